"""Chains: a dense convolution, the depthwise one behind it, and perhaps the 1 x 1 one behind that become one node.

Such are the inverted residuals of mobile networks (https://arxiv.org/abs/1801.04381). What lies between the three is
several times as large as what goes in and comes out, and need not leave the cache when they run in one pass.
"""

from __future__ import annotations

import math
from typing import cast

from powerlab.engine.ir.graph import Graph, Node, convolutions_of
from powerlab.engine.passes.rewriting import Rewriter, Sole, fuse_into_producers

FEW_CHANNELS = 4
"""So many at most has an image; a first layer that reads one may be larger than 1 x 1."""

TAIL_BYTES = 512 << 10
"""The tail joins where one image of the head's result is larger, and larger than the weights around it, which are read
for every band of rows: else the last two are as fast apart, since threads can then share channels instead of rows."""


def fuse_chains(graph: Graph) -> Graph:
    """Return the graph with chains joined wherever nobody else reads what lies between."""
    sources = frozenset(info.name for info in graph.inputs)

    def fuse(node: Node, sole: Sole, _rewriter: Rewriter) -> tuple[Node, Node] | None:
        if node.op_type != "FusedConv":
            return None
        before = sole(node.inputs[0])
        if before is None:
            return None
        if before.op_type == "FusedConv" and _is_depthwise(graph, node) and _is_head(graph, before, sources):
            return _chain(before, node), before
        if before.op_type == "Chain" and _is_tail(graph, node):
            convolutions = convolutions_of(before)
            if len(convolutions) == 2 and tail_pays(graph, convolutions[0], node):
                return _chain(*convolutions, node), before
        return None

    return fuse_into_producers(graph, fuse)


def tail_pays(graph: Graph, head: Node, tail: Node) -> bool:
    """Tell whether a chain that begins with ``head`` should end with ``tail``."""
    image = 4 * math.prod(graph.shape(head.outputs[0])[1:])
    weights = 4 * sum(math.prod(graph.shape(conv.inputs[1])) for conv in (head, tail))
    return image > max(TAIL_BYTES, weights)


def _chain(*convolutions: Node) -> Node:
    last = convolutions[-1]
    constants = [name for conv in convolutions for name in conv.inputs[1:3] if name]
    operands = (convolutions[0].inputs[0], last.input(3))
    return Node("Chain", last.name, (*operands, *constants), last.outputs, {"convolutions": convolutions})


def _is_depthwise(graph: Graph, conv: Node) -> bool:
    channels = graph.shape(conv.inputs[0])[1]
    outputs = graph.shape(conv.inputs[1])[0]
    return conv.attributes["group"] == channels == outputs and channels > 1 and not conv.input(3)


def _is_head(graph: Graph, conv: Node, sources: frozenset[str]) -> bool:
    _, inputs, *kernel = graph.shape(conv.inputs[1])
    reads_image = conv.inputs[0] in sources and inputs <= FEW_CHANNELS and conv.attributes["dilations"] == (1, 1)
    return conv.attributes["group"] == 1 and not conv.input(3) and (kernel == [1, 1] or reads_image)


def _is_tail(graph: Graph, conv: Node) -> bool:
    unit = conv.attributes["strides"] == (1, 1) and not any(cast("tuple[int, ...]", conv.attributes["pads"]))
    return conv.attributes["group"] == 1 and graph.shape(conv.inputs[1])[2:] == (1, 1) and unit
