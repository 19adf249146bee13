"""Layers that work on each pixel's channels alone are computed where the channels already lie: first.

Networks bring channels to the last axis for layer norms and linear layers, and back for convolutions. A linear layer is
a convolution of 1 x 1, and a norm or a function is the same on either side, so a chain of them between two such
transpositions needs neither. With one transposition before or behind a chain, it changes places with the linear layers
that make the tensor wider or narrower: fewer channels move.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Array, Graph, Node
from powerlab.engine.ops.functions import OPERATORS as FUNCTIONS
from powerlab.engine.ops.view import FLOAT32
from powerlab.engine.passes.rewriting import Rewriter, sole_among
from powerlab.engine.passes.simplify.dead_nodes import drop_dead

_RANKS = (3, 4)

_EACH = FUNCTIONS.keys() | {"LeakyRelu", "Relu"}
"""Operators that treat each number by itself."""

_CHANNEL_NORMS = ("layer_norm", "rms_norm")
"""Norms that images in blocks have kernels for."""


class _Chain(Struct, frozen=True):
    """Nodes each of which is the only reader of the one before, all on tensors whose channels come last.

    Attributes:
        before: the Transpose whose result the first one reads; None where it reads something else.
        nodes: the chain.
        after: the Transpose that alone reads the last one's result; None where something else does.
    """

    before: Node | None
    nodes: tuple[Node, ...]
    after: Node | None

    def beside(self, others: Sequence[_Chain]) -> _Chain:
        """Return the chain without the transpositions that others took.

        With three axes, what ends one chain may begin the next, and only one of them can do without it.
        """
        before = None if self.before in [other.after for other in others] else self.before
        after = None if self.after in [other.before for other in others] else self.after
        return replace(self, before=before, after=after)

    def part(self, graph: Graph) -> tuple[int, int]:
        """Return the nodes, from and to, that are worth computing with the channels first."""
        count = len(self.nodes)
        if self.before is not None and self.after is not None:
            return 0, count
        widths = [graph.shape(self.nodes[0].inputs[_operand(graph, self.nodes[0])])[-1]]
        widths += [graph.shape(node.outputs[0])[-1] for node in self.nodes]
        narrowest = min(widths)
        if self.after is not None:
            return max(at for at, width in enumerate(widths) if width == narrowest), count
        if self.before is not None:
            return 0, min(at for at, width in enumerate(widths) if width == narrowest)
        return 0, 0


def put_channels_first(graph: Graph) -> Graph:
    """Return the graph without the transpositions around chains of layers over channels that need none."""
    if "Transpose" not in graph.operators:
        return graph
    graph = drop_dead(graph)  # what fusions left behind still seems to read
    rewriter = Rewriter(graph)
    replaced: dict[str, Sequence[Node]] = {}
    dropped: set[str] = set()
    turned: list[_Chain] = []
    for found in sorted(_chains(graph), key=lambda chain: -len(chain.nodes)):
        chain = found.beside(turned)
        begin, end = chain.part(graph)
        if begin == end:
            continue
        made = _with_channels_first(chain, begin, end, rewriter)
        turned.append(chain)
        last = chain.after.outputs[0] if chain.after is not None and end == len(chain.nodes) else None
        replaced[last or chain.nodes[end - 1].outputs[0]] = made
        dropped |= {node.outputs[0] for node in chain.nodes[begin:end]}
    nodes: list[Node] = []
    for node in graph.nodes:
        name = node.outputs[0]
        if name in replaced:
            nodes.extend(replaced[name])
        elif name not in dropped:
            nodes.append(node)
    return drop_dead(rewriter.finish(nodes))


def _chains(graph: Graph) -> list[_Chain]:
    """Return the longest chains; each node is in one of them at most."""
    made = graph.producers()
    sole = sole_among(made, graph)
    readers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            readers.setdefault(name, []).append(node)
    found, taken = [], set[str]()
    for node in graph.nodes:
        if node.outputs[0] in taken or not _is_link(graph, node):
            continue
        nodes, after = [node], None
        while sole(nodes[-1].outputs[0]) is not None:
            reader = readers[nodes[-1].outputs[0]][0]
            if _turns(graph, reader, to_last=False):
                after = reader
            if not _is_link(graph, reader):
                break
            nodes.append(reader)
        taken |= {one.outputs[0] for one in nodes}
        before = made.get(node.inputs[_operand(graph, node)])
        turned = before is not None and _turns(graph, before, to_last=True)
        if turned or after is not None:
            found.append(_Chain(before if turned else None, tuple(nodes), after))
    return found


def _turns(graph: Graph, node: Node, *, to_last: bool) -> bool:
    """Say whether a node brings the channels of images to the last axis, or from there to the second."""
    if node.op_type != "Transpose":
        return False
    rank = len(graph.shape(node.outputs[0]))
    return rank in _RANKS and node.attributes.get("perm") == _order(rank, to_last)


def _operand(graph: Graph, node: Node) -> int:
    """Return which input of a node is computed: its scale, bias or weights may come first."""
    return int(len(node.inputs) == 2 and node.inputs[0] in graph.constants and node.inputs[1] not in graph.constants)


def _is_link(graph: Graph, node: Node) -> bool:
    """Say whether a node works on each pixel's channels alone, channels being the last axis."""
    made = graph.tensors[node.outputs[0]]
    if made.dtype != FLOAT32 or len(made.shape) not in _RANKS or len(node.outputs) > 1:
        return False
    x = graph.shape(node.inputs[_operand(graph, node)])
    if node.op_type == "RowNorm":
        of_channels = node.attributes["axis"] == len(x) - 1 and node.attributes["kernel"] in _CHANNEL_NORMS
        return of_channels and all(name in graph.constants for name in node.inputs[1:])
    if node.op_type in _EACH:
        return len(node.inputs) == 1
    if len(node.inputs) != 2 or (constant := _constant(graph, node)) is None:
        return False
    if node.op_type == "MatMul":
        return node.inputs[1] == constant and len(graph.shape(constant)) == 2
    return node.op_type in ("Add", "Mul") and x == made.shape and graph.shape(constant) in ((), (1,), x[-1:])


def _constant(graph: Graph, node: Node) -> str | None:
    name = node.inputs[1 - _operand(graph, node)]
    return name if name in graph.constants else None


def _with_channels_first(chain: _Chain, begin: int, end: int, rewriter: Rewriter) -> Sequence[Node]:
    """Return nodes that compute part of a chain, between the transpositions that are left."""
    graph, nodes = rewriter.graph, list[Node]()
    first = chain.nodes[begin]
    source = first.inputs[_operand(graph, first)]
    if chain.before is not None and begin == 0:
        x = chain.before.inputs[0]
    else:
        x = rewriter.tensor(f"{source}.first", _first(graph.shape(source)))
        nodes.append(_turned(source, x, len(graph.shape(source)), to_last=False))
    for node in chain.nodes[begin:end]:
        made = rewriter.tensor(f"{node.outputs[0]}.first", _first(graph.shape(node.outputs[0])))
        if _is_bias(node, nodes, rewriter):
            nodes[-1] = replace(nodes[-1], inputs=(*nodes[-1].inputs, _constant(graph, node) or ""), outputs=(made,))
        else:
            nodes.append(_link(node, x, made, rewriter))
        x = made
    rank = len(graph.shape(first.outputs[0]))
    if chain.after is not None and end == len(chain.nodes):
        nodes[-1] = replace(nodes[-1], outputs=chain.after.outputs)
    else:
        nodes.append(_turned(x, chain.nodes[end - 1].outputs[0], rank, to_last=True))
    return nodes


def _is_bias(node: Node, before: Sequence[Node], rewriter: Rewriter) -> bool:
    """Say whether a node adds one number a channel to a convolution that has no bias yet."""
    if node.op_type != "Add" or not before or before[-1].op_type != "Conv" or len(before[-1].inputs) > 2:
        return False
    return rewriter.graph.shape(_constant(rewriter.graph, node) or "") == rewriter.graph.shape(node.outputs[0])[-1:]


def _first(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (shape[0], shape[-1], *shape[1:-1])


def _turned(source: str, output: str, rank: int, *, to_last: bool) -> Node:
    return Node("Transpose", output, (source,), (output,), {"perm": _order(rank, to_last)})


def _order(rank: int, to_last: bool) -> tuple[int, ...]:
    return (0, *range(2, rank), 1) if to_last else (0, rank - 1, *range(1, rank - 1))


def _link(node: Node, x: str, output: str, rewriter: Rewriter) -> Node:
    """Return the node of a chain that has its channels first."""
    graph = rewriter.graph
    if node.op_type == "RowNorm":
        attributes = {"kernel": node.attributes["kernel"], "epsilon": node.attributes["epsilon"]}
        return Node("ChannelNorm", node.name, (x, *node.inputs[1:]), (output,), attributes)
    if node.op_type in _EACH:
        return replace(node, inputs=(x,), outputs=(output,))
    constant = _constant(graph, node)
    assert constant is not None  # noqa: S101  a link has one
    value, pixels = rewriter.kept(constant), len(graph.shape(node.outputs[0])) - 2
    if node.op_type == "MatMul":
        shape = (value.shape[1], value.shape[0], *(1,) * pixels)
        weights = rewriter.constant(f"{constant}.first", derived(value, shape, partial(_as_kernel, shape=shape)))
        return Node("Conv", node.name, (x, weights), (output,))
    shape = (value.size, *(1,) * pixels)
    vector = rewriter.constant(f"{constant}.first", derived(value, shape, partial(np.reshape, shape=shape)))
    return replace(node, inputs=(x, vector), outputs=(output,))


def _as_kernel(weights: Array, *, shape: tuple[int, ...]) -> Array:
    return weights.T.reshape(shape)
