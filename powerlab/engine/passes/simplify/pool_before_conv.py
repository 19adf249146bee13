"""Averages before convolutions: an average of a 1 x 1 convolution's pixels is taken of its input instead.

Both are linear, one over pixels and one over channels, and an average keeps a bias as it is: so they may change places,
and the convolution is left with as many pixels as the pool puts out. The blocks of a DenseNet (G. Huang et al.,
https://arxiv.org/abs/1608.06993, section 3) are joined so. A ScaleShift between both goes along with the convolution.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import is_linear
from powerlab.engine.passes.rewriting import Rewriter, Sole, sole_among


def pool_first(graph: Graph) -> Graph:
    """Return the graph with every average pool before the 1 x 1 convolutions that nobody but it reads."""
    rewriter = Rewriter(graph)
    made: dict[str, Node] = {}
    sole = sole_among(made, graph)
    for node in graph.nodes:
        overtaken = _overtaken(graph, node, sole)
        for later in overtaken:
            del made[later.outputs[0]]
        for moved in _moved(node, overtaken, rewriter) if overtaken else (node,):
            made[moved.outputs[0]] = moved
    return rewriter.finish(tuple(made.values()))


def _overtaken(graph: Graph, pool: Node, sole: Sole) -> list[Node]:
    """Return the nodes that a pool may overtake, in the order they run: none, or a convolution and what follows it."""
    if not _averages_fewer(graph, pool):
        return []
    found: list[Node] = []
    before = sole(pool.inputs[0])
    while before is not None and _keeps_pixels(graph, before):
        found.insert(0, before)
        before = sole(before.inputs[0])
    first = next((index for index, node in enumerate(found) if node.op_type == "FusedConv"), len(found))
    return found[first:]


def _averages_fewer(graph: Graph, node: Node) -> bool:
    """Tell whether a node averages pixels, none of them padding, and puts out fewer than it reads."""
    if node.op_type == "AveragePool":
        fewer = graph.tensors[node.outputs[0]].elements < graph.tensors[node.inputs[0]].elements
        return fewer and node.attributes["pads"] == (0, 0, 0, 0)
    return node.op_type == "GlobalAveragePool"


def _keeps_pixels(graph: Graph, node: Node) -> bool:
    """Tell whether each pixel a node puts out is a linear function of the same pixel of its only computed input."""
    if node.op_type == "ScaleShift":
        return is_linear(node)
    if node.op_type != "FusedConv" or node.input(3) or not is_linear(node):
        return False
    attributes = node.attributes
    one_by_one = graph.shape(node.inputs[1])[2:] == attributes["strides"] == (1, 1)
    return one_by_one and attributes["pads"] == (0, 0, 0, 0)


def _moved(pool: Node, overtaken: list[Node], rewriter: Rewriter) -> list[Node]:
    """Return the pool and behind it what it has overtaken, the last of them making what the pool has made."""
    graph, output = rewriter.graph, pool.outputs[0]
    images, _, *size = graph.shape(output)
    channels = graph.shape(overtaken[0].inputs[1])[1] * cast("int", overtaken[0].attributes["group"])
    source, moved = overtaken[0].inputs[0], []
    for node in (pool, *overtaken[:-1]):
        if node.op_type == "FusedConv":
            channels = graph.shape(node.inputs[1])[0]
        between = rewriter.tensor(f"{output}.{node.op_type.lower()}", (images, channels, *size))
        moved.append(replace(node, inputs=(source, *node.inputs[1:]), outputs=(between,)))
        source = between
    return [*moved, replace(overtaken[-1], inputs=(source, *overtaken[-1].inputs[1:]), outputs=(output,))]
