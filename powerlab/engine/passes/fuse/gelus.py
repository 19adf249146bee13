"""Gelu, as exporters write it out with several operators: x / 2 (1 + erf(x / sqrt 2)), or its approximation by tanh.

Source: https://arxiv.org/abs/1606.08415.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.passes.rewriting import one_number, sole_among

_SAME = 1e-5
"""Relative difference up to which a constant is the formula's: exporters write some with seven digits."""

_CUBIC = 0.044715
"""Of the approximation x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))."""


def fuse_gelus(graph: Graph) -> Graph:
    """Return the graph with Gelu in place of its formula; what nobody reads any more is dropped later."""
    formulas = _Formulas(graph)
    nodes = []
    for node in graph.nodes:
        found = formulas.gelu(node) if node.op_type == "Mul" else None
        nodes.append(Node("Gelu", node.name, (found[0],), node.outputs, found[1]) if found else node)
    return graph.rewritten(nodes)


class _Formulas:
    """What the tensors of a graph are, read as formulas."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._made = graph.producers()
        self._sole = sole_among(self._made, graph)

    def gelu(self, node: Node) -> tuple[str, dict[str, object]] | None:
        """Return x and the attributes where a product is that of 1/2, x and 1 + erf(...) or 1 + tanh(...)."""
        half, factors = self._product(node)
        if len(factors) != 2 or not _is(half, 0.5):
            return None
        for x, other in (factors, factors[::-1]):
            inside = self._made.get(self._other_addend(other, self._is_one))
            if inside is not None and inside.op_type == "Erf" and self._is_over_root_two(inside.inputs[0], x):
                return x, {}
            if inside is not None and inside.op_type == "Tanh" and self._is_argument_of_tanh(inside.inputs[0], x):
                return x, {"approximate": "tanh"}
        return None

    def _is_over_root_two(self, name: str, x: str) -> bool:
        node = self._made.get(name)
        if node is not None and node.op_type == "Div" and node.inputs[0] == x:
            divisor = one_number(self._graph, node.inputs[1])
            return divisor is not None and _is(divisor, math.sqrt(2))
        number, factors = self._product(node)
        return factors == [x] and _is(number, math.sqrt(0.5))

    def _is_argument_of_tanh(self, name: str, x: str) -> bool:
        """Tell whether a tensor is sqrt(2 / pi) (x + 0.044715 x^3), or that with x taken out of the sum."""
        number, factors = self._product(self._made.get(name))
        if not _is(number, math.sqrt(2 / math.pi)):
            return False
        if len(factors) == 1:
            return self._is_power(self._other_addend(factors[0], lambda addend: addend == x), x, 3)
        sums = [factor for factor in factors if factor != x]
        if len(factors) != 2 or len(sums) != 1:
            return False
        return self._is_power(self._other_addend(sums[0], self._is_one), x, 2)

    def _is_power(self, name: str, x: str, exponent: int) -> bool:
        """Tell whether a tensor is 0.044715 x^exponent."""
        number, factors = self._product(self._made.get(name))
        return _is(number, _CUBIC) and sum(self._exponent(factor, x) for factor in factors) == exponent

    def _exponent(self, name: str, x: str) -> float:
        """Return to which power of x a tensor is raised; not a number where it is none."""
        if name == x:
            return 1
        node = self._made.get(name)
        exponent = one_number(self._graph, node.inputs[1]) if node is not None and node.op_type == "Pow" else None
        return math.nan if exponent is None or node is None or node.inputs[0] != x else exponent

    def _other_addend(self, name: str, is_one: Callable[[str], bool]) -> str:
        """Return the addend of a sum beside the one that is looked for, if any."""
        node = self._made.get(name)
        if node is not None and node.op_type == "Add":
            for one, other in (node.inputs, node.inputs[::-1]):
                if is_one(one):
                    return other
        return ""

    def _product(self, node: Node | None) -> tuple[float, list[str]]:
        """Return the number and the tensors that are multiplied, through products that nobody else reads."""
        number, tensors = 1.0, []
        for name in self._factors(node):
            constant = one_number(self._graph, name)
            number *= 1.0 if constant is None else constant
            tensors += [name] if constant is None else []
        return number, tensors

    def _factors(self, node: Node | None) -> Iterator[str]:
        if node is None or node.op_type != "Mul":
            return
        for name in node.inputs:
            before = self._sole(name)
            if before is not None and before.op_type == "Mul":
                yield from self._factors(before)
            else:
                yield name

    def _is_one(self, name: str) -> bool:
        return one_number(self._graph, name) == 1.0


def _is(number: float, expected: float) -> bool:
    return math.isclose(number, expected, rel_tol=_SAME)
