"""Einsum becomes transposes, products of matrices and sums, one input after the other.

A product of two terms is one of matrices: letters in both and needed later are the batch, letters in both that nobody
needs are summed, the others are rows and columns. What only one term has and nobody needs is summed before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.einsum import equation_of
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.expand.expansion import Expansion
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


class _Terms:
    """The expansion of one Einsum."""

    def __init__(self, add: Expansion, sizes: dict[str, int]) -> None:
        self.add = add
        self.sizes = sizes

    def diagonal(self, tensor: str, term: str) -> tuple[str, str]:
        """Take elements with one index where a letter stands twice."""
        while len(set(term)) < len(term):
            letter = next(one for one in term if term.count(one) > 1)
            first, second = term.index(letter), term.rindex(letter)
            rest = [axis for axis in range(len(term)) if axis not in (first, second)]
            size = self.sizes[letter]
            shape = self.add.shape(tensor)
            turned = self.add("Transpose", tensor, perm=(*rest, first, second))
            kept = [shape[axis] for axis in rest]
            flat = self.add.reshape(turned, (*kept, size * size))
            steps = self.add("Slice", flat, *(self.add.ints([one]) for one in (0, size * size, len(rest), size + 1)))
            tensor, term = steps, "".join(term[axis] for axis in rest) + letter
        return tensor, term

    def summed(self, tensor: str, term: str, needed: Collection[str]) -> tuple[str, str]:
        """Sum over the letters that nobody needs."""
        axes = [axis for axis, letter in enumerate(term) if letter not in needed]
        if axes:
            tensor = self.add("ReduceSum", tensor, self.add.ints(axes), keepdims=0)
        return tensor, "".join(letter for letter in term if letter in needed)

    def ordered(self, tensor: str, term: str, wanted: str) -> str:
        """Return a tensor with its axes in the order of ``wanted``; those it lacks have the size 1."""
        present = "".join(letter for letter in wanted if letter in term)
        if present != term:
            tensor = self.add("Transpose", tensor, perm=tuple(term.index(letter) for letter in present))
        shape = dict(zip(present, self.add.shape(tensor), strict=True))
        return self.add.reshape(tensor, [shape.get(letter, 1) for letter in wanted])

    def multiplied(self, left: tuple[str, str], right: tuple[str, str], needed: Collection[str]) -> tuple[str, str]:
        """Multiply two terms; ``needed`` are the letters of later terms and the result."""
        a, a_term = self.summed(*left, {*right[1], *needed})
        b, b_term = self.summed(*right, {*left[1], *needed})
        a_sizes, b_sizes = (
            dict(zip(term, self.add.shape(one), strict=True)) for one, term in ((a, a_term), (b, b_term))
        )
        shared = [letter for letter in a_term if letter in b_term]
        batch = "".join(letter for letter in shared if letter in needed)
        inner = "".join(letter for letter in shared if letter not in needed)
        rows = "".join(letter for letter in a_term if letter not in shared)
        columns = "".join(letter for letter in b_term if letter not in shared)
        if not inner or any(a_sizes[letter] != b_sizes[letter] for letter in inner):
            made = batch + rows + columns + inner
            product = self.add("Mul", self.ordered(a, a_term, made), self.ordered(b, b_term, made))
            return self.summed(product, made, needed)
        height, depth = (math.prod(a_sizes[letter] for letter in part) for part in (rows, inner))
        width = math.prod(b_sizes[letter] for letter in columns)
        a, b = self.ordered(a, a_term, batch + rows + inner), self.ordered(b, b_term, batch + inner + columns)
        a = self.add.reshape(a, (*(a_sizes[letter] for letter in batch), height, depth))
        b = self.add.reshape(b, (*(b_sizes[letter] for letter in batch), depth, width))
        made = batch + rows + columns
        sizes = {letter: max(a_sizes.get(letter, 1), b_sizes.get(letter, 1)) for letter in made}
        return self.add.reshape(self.add("MatMul", a, b), list(sizes.values())), made


def _einsum(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    equation, add = equation_of(view), Expansion(view, rewriter)
    terms = _Terms(add, equation.sizes)
    waiting = [terms.diagonal(*one) for one in zip(view.node.inputs, equation.terms, strict=True)]
    done = waiting[0]
    for index, term in enumerate(waiting[1:], start=2):
        needed = {*equation.result, *(letter for _, later in waiting[index:] for letter in later)}
        done = terms.multiplied(done, term, needed)
    tensor, letters = terms.summed(*done, equation.result)
    return add.ending(terms.ordered(tensor, letters, equation.result))


def expand_einsum(graph: Graph) -> Graph:
    """Return the graph without Einsum."""
    return rewrite_nodes(graph, {"Einsum": _einsum})
