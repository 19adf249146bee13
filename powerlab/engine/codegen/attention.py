"""Attention: a product, its softmax and a second product, found in a graph, so that one kernel computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from powerlab.engine.codegen.attributes import number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear

_MOST_BETWEEN = 6
"""Sums and Reshapes between the scores and the softmax: windows of an image have up to five."""


class Mask(Struct, frozen=True):
    """What is added to the scores.

    Attributes:
        name: the tensor.
        shape: of the scores with it, which it is broadcast to; a Reshape may have given them other batch axes.
    """

    name: str
    shape: tuple[int, ...]


class Attention(Struct, frozen=True):
    """Nodes that are one: ``products`` make scores and the result.

    Attributes:
        products: the first one and the second.
        masks: what is added to the scores, in this order.
        zeros: whether a row of nothing but minus infinity becomes zeros.
        between: the nodes between the products.
        after: a Transpose that alone reads the result, which may be written in its order then.
    """

    products: tuple[Node, Node]
    masks: tuple[Mask, ...]
    zeros: bool
    between: tuple[Node, ...]
    after: Node | None

    @property
    def before(self) -> tuple[Node, ...]:
        """Return the nodes in front of the second product, none of which is computed by itself."""
        return self.products[0], *self.between

    @property
    def covered(self) -> tuple[Node, ...]:
        """Return all nodes but the second product that are not computed by themselves."""
        return (*self.before, self.after) if self.after else self.before


def find_attentions(graph: Graph, fits: Callable[[Attention], bool]) -> list[Attention]:
    """Return every attention of a graph that fits a kernel and whose scores nobody else reads.

    Where the result of one is the scores of the next, the first has it.
    """
    softmaxes = [node for node in graph.nodes if node.op_type == "Softmax"]
    if not softmaxes:
        return []
    pattern = _Pattern(graph)
    found: list[Attention] = []
    taken: set[str] = set()
    for node in softmaxes:
        one = pattern.around(node)
        if one is None or not fits(one):
            continue
        names = {part.outputs[0] for part in (*one.covered, *one.products)}
        if taken.isdisjoint(names):
            found.append(one)
            taken |= names
    return found


class _Pattern:
    """Who reads and makes the tensors of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._outputs = graph, graph.output_names()
        self._consumers: Mapping[str, Sequence[Node]] = graph.consumers()
        self._producers = graph.producers()

    def _reader(self, name: str) -> Node | None:
        """Return the only node that reads a tensor."""
        readers = self._consumers[name]
        return readers[0] if len(readers) == 1 and name not in self._outputs else None

    def around(self, softmax: Node) -> Attention | None:
        """Return the attention to which a Softmax belongs."""
        shape = self._graph.shape(softmax.inputs[0])
        if int(number(softmax, "axis")) % len(shape) != len(shape) - 1:
            return None
        made = self._scores(softmax.inputs[0], _MOST_BETWEEN)
        if made is None:
            return None
        (first, *before), masks = made
        zeros, scores = bool(softmax.attributes.get("masked", 0)), softmax.outputs[0]
        after = self._without_nan(scores) if scores not in self._outputs else ()
        if after:
            zeros, scores = True, after[-1].outputs[0]
        second = self._reader(scores)
        if second is None or second.op_type != "Product":
            return None
        if not second.inputs[0] == scores != second.inputs[1] or second.attributes["left"]:
            return None
        moved = self._reader(second.outputs[0])
        last = moved if moved is not None and moved.op_type == "Transpose" else None
        return Attention((first, second), masks, zeros, (*before, softmax, *after), last)

    def _scores(self, name: str, most: int) -> tuple[tuple[Node, ...], tuple[Mask, ...]] | None:
        """Return the nodes that make scores, the product first, and what they add; at most so many behind it."""
        node = self._producers.get(name)
        if node is None or self._reader(name) is None:
            return None
        if node.op_type == "Product":
            return (node,), ()
        shape = self._graph.shape(name)
        if most == 0 or not (_adds(node) or node.op_type == "Reshape"):
            return None
        for source, other in zip(node.inputs, node.inputs[::-1] if _adds(node) else ("",), strict=False):
            own = self._graph.shape(source)
            made = self._scores(source, most - 1) if own[-2:] == shape[-2:] else None
            if made is None or math.prod(own) != math.prod(shape):
                continue
            nodes, masks = made
            return (*nodes, node), (*masks, Mask(other, shape)) if other else masks
        return None

    def _without_nan(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that put 0 for what is not a number, if the readers of a tensor do."""
        readers = self._consumers[name]
        tests = [node for node in readers if node.attributes.get("kernel") == "is_nan_strided_f32"]
        puts = [node for node in readers if node.attributes.get("kernel") == "where_strided_f32"]
        if len(readers) != 2 or len(tests) != 1 or len(puts) != 1:
            return ()
        (test,), (put,) = tests, puts
        zero = self._graph.constants.get(put.inputs[1])
        alone = len(self._consumers[test.outputs[0]]) == 1 and put.inputs[0] == test.outputs[0]
        return (test, put) if alone and put.inputs[2] == test.inputs[0] and zero is not None and not zero.any() else ()


def _adds(node: Node) -> bool:
    """Tell whether a node is a plain sum of two."""
    if node.op_type == "Elementwise":
        return node.attributes["kernel"] == "add_strided_f32"
    return node.op_type == "Add" and is_linear(node)
