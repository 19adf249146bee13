"""Channels that are joined or cut between bytes move as bytes, wherever in a block of 16 they begin.

What has another scale than the result gets that one: parts before they are joined, a cut one afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.ops.moving import concat_axis, slices, split_axis, split_sizes
from powerlab.engine.ops.quantization import UINT8
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.quantized.scales import byte_steps, whole_range
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.passes.simplify.dead_nodes import drop_dead


class _Bytes(NamedTuple):
    """A tensor of bytes: its name, the size of a step, and the byte that stands for 0."""

    name: str
    step: float
    zero: int

    def attributes(self) -> dict[str, object]:
        """Return its zero point and the bounds of all bytes as attributes of the operator that makes it."""
        return whole_range(self.zero)


def move_bytes(graph: Graph) -> Graph:
    """Return the graph with a QuantConcat or QuantSlice wherever bytes only move among channels."""
    if "Quantize" not in graph.operators:
        return graph
    moves = _Moves(graph)
    nodes = [made for node in graph.nodes for made in moves.nodes_for(node)]
    return drop_dead(moves.rewriter.finish(nodes)) if moves.found else graph


class _Moves:
    """What is known of the floats made so far; nodes on bytes that nobody reads in the end are dropped as dead ones."""

    def __init__(self, graph: Graph) -> None:
        self.rewriter = Rewriter(graph)
        self.found = False
        self._graph = graph
        self._known: dict[str, _Bytes] = {}
        self._joined: dict[str, Sequence[_Bytes]] = {}
        self._same: dict[str, str] = {}

    def nodes_for(self, node: Node) -> Iterator[Node]:
        """Give the nodes to stand where a node stood: it, and those on bytes beside it or in its place."""
        if node.op_type == "Quantize":
            yield from self._quantized(node)
            return
        node = node.renamed(self._same, node.name) if self._same else node
        yield node
        match node.op_type:
            case "Dequantize":
                if len(self._graph.shape(node.outputs[0])) == IMAGE_AXES:
                    self._known[node.outputs[0]] = _bytes(node.inputs[0], node)
            case "Concat":
                if self._known.keys() >= set(node.inputs) and concat_axis(NodeView.of(self._graph, node)) == 1:
                    yield from self._concatenated(node)
            case "Slice" | "Split":
                if node.inputs[0] in self._known and self._graph.kept_constants.keys() >= set(node.inputs[1:]) - {""}:
                    yield from self._cut(node)

    def _quantized(self, node: Node) -> Iterator[Node]:
        source, wanted = node.inputs[0], _bytes(node.outputs[0], node)
        known, parts = self._known.get(source), self._joined.get(source)
        if "low" in node.attributes or not (known or parts):
            yield node
            return
        self.found = True
        if known is None:
            rescaled = [self._rescaled(part, wanted) for part in parts or ()]
            yield from filter(None, (made for _, made in rescaled))
            names = tuple(name for name, _ in rescaled)
            yield Node("QuantConcat", node.name, names, node.outputs, {"axis": 1, **wanted.attributes()})
        elif known[1:] == wanted[1:]:
            self._same[wanted.name] = known.name
        else:
            yield Node("QuantAdd", node.name, (known.name,), node.outputs, _between(known, wanted))

    def _rescaled(self, part: _Bytes, wanted: _Bytes) -> tuple[str, Node | None]:
        """Return bytes with the steps of others, and the node that makes them; None where they have these already."""
        if part[1:] == wanted[1:]:
            return part.name, None
        made = self._new(f"{wanted.name}.part", self.rewriter.shape(part.name))
        return made, Node("QuantAdd", made, (part.name,), (made,), _between(part, wanted))

    def _concatenated(self, node: Node) -> Iterator[Node]:
        """Join bytes at once where all have the same steps; else what quantizes the whole says which they get."""
        output, parts = node.outputs[0], [self._known[name] for name in node.inputs]
        if len({part[1:] for part in parts}) > 1:
            self._joined[output] = parts
            return
        whole = parts[0]._replace(name=self._new(f"{output}.bytes", self._graph.shape(output)))
        self._known[output] = whole
        names = tuple(part.name for part in parts)
        yield Node("QuantConcat", whole.name, names, (whole.name,), {"axis": 1, **whole.attributes()})

    def _cut(self, node: Node) -> Iterator[Node]:
        source = self._known[node.inputs[0]]
        for output, first in self._first_channels(node).items():
            part = source._replace(name=self._new(f"{output}.bytes", self._graph.shape(output)))
            self._known[output] = part
            attributes = {"first": first, **part.attributes()}
            yield Node("QuantSlice", part.name, (source.name,), (part.name,), attributes)

    def _first_channels(self, node: Node) -> Mapping[str, int]:
        """Return where each result begins that has all pixels of channels that follow on each other."""
        view, before = NodeView.of(self._graph, node), self._graph.shape(node.inputs[0])
        if node.op_type == "Split":
            firsts = itertools.accumulate(split_sizes(view), initial=0)
            return {name: at for name, at in zip(node.outputs, firsts, strict=False) if name and split_axis(view) == 1}
        after, parts = self._graph.shape(node.outputs[0]), [*map(slice.indices, slices(view), before)]
        whole = (before[0], *before[2:]) == (after[0], *after[2:])
        return {node.outputs[0]: parts[1][0]} if whole and all(step == 1 for _, _, step in parts) else {}

    def _new(self, name: str, shape: tuple[int, ...]) -> str:
        return self.rewriter.tensor(name, shape, UINT8)


def _bytes(name: str, node: Node) -> _Bytes:
    """Return bytes with the steps of a Quantize or Dequantize."""
    return _Bytes(name, *byte_steps(node))


def _between(own: _Bytes, wanted: _Bytes) -> dict[str, object]:
    return {"x_zero": own.zero, "x_ratio": own.step / wanted.step, **wanted.attributes()}
