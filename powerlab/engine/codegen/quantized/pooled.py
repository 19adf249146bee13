"""Quantized convolutions that a max pool ends; kernels/bytes/conv_pool_bytes.hpp says what parts and scratch are.

What lies between them never is in memory as a whole: networks that begin so have no larger tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.quantized.convolution import Pooled, byte_convolution, emit_direct
from powerlab.engine.ir.graph import IMAGE_AXES, Graph, Node
from powerlab.engine.program.layout import NO_HALO, Layout, byte_blocks, divide_up, shape4
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine

_MOST_LOST = 0.05
"""Of the work, at most, for rows that two threads both make, and for a thread that has a row more than others."""


def find_pooled(graph: Graph, machine_of: Callable[[Node], Machine]) -> dict[str, Node]:
    """Return the QuantConv that each of some max pools ends, by the pool's output.

    Args:
        graph: an optimised graph.
        machine_of: tells what a node runs on; nodes that do not run on the same stay apart.
    """
    if "QuantPool" not in graph.operators:
        return {}
    producers, outputs = graph.producers(), graph.output_names()
    found: dict[str, Node] = {}
    for pool in graph.nodes:
        if pool.op_type != "QuantPool" or pool.attributes["kind"] != "max":
            continue
        conv = producers.get(pool.inputs[0])
        if conv is None or graph.readings[conv.outputs[0]] != 1 or conv.outputs[0] in outputs:
            continue
        machine = machine_of(conv)
        if _goes_by_rows(graph, conv) and machine_of(pool) == machine and _pays(graph, conv, pool, machine):
            found[pool.outputs[0]] = conv
    return found


def lower_pooled(builder: Builder, conv: Node, pool: Node) -> None:
    """Lower a QuantConv and the QuantPool that ends it as one step."""
    graph = builder.graph
    made = byte_blocks(shape4(graph.shape(conv.outputs[0])), NO_HALO)
    band = _band(graph, conv, pool, _windows(graph, conv, pool, builder.machine))
    pooled = Pooled(pool, band, made, builder.scratch(band.size))
    emit_direct(builder, byte_convolution(builder, conv, builder.new_bytes(pool.outputs[0]), pooled))


def _goes_by_rows(graph: Graph, conv: Node) -> bool:
    """Tell whether a node is a convolution whose rows can be made one after the other, from its input alone."""
    return (
        conv.op_type == "QuantConv"
        and not conv.input(4)
        and not conv.attributes.get("floats")
        and number(conv, "group") == 1
        and len(graph.shape(conv.outputs[0])) == IMAGE_AXES
    )


def _pays(graph: Graph, conv: Node, pool: Node, machine: Machine) -> bool:
    """Tell whether weights and a band of rows stay in the second-level cache, and threads share the rows evenly."""
    weights = math.prod(graph.shape(conv.inputs[1]))
    if weights > machine.caches.l2_bytes // 2 or not _windows(graph, conv, pool, machine):
        return False
    images, _, count, _ = graph.shape(pool.outputs[0])
    rows = images * count
    own, stride = divide_up(rows, machine.threads), integers(pool, "strides")[0]
    again = max(0, integers(pool, "kernel")[0] - stride) / (own * stride) if machine.threads > 1 else 0.0
    return own * machine.threads * (1 + again) <= rows * (1 + _MOST_LOST)


def _windows(graph: Graph, conv: Node, pool: Node, machine: Machine) -> int:
    """Return how many rows of windows a band is for, which fills a quarter of the second-level cache at most."""
    most, one = machine.caches.l2_bytes // 4, _band(graph, conv, pool, 1).size * FLOAT_BYTES
    more = _band(graph, conv, pool, 2).size * FLOAT_BYTES - one
    return 0 if one > most else min(graph.shape(pool.outputs[0])[2], 1 + (most - one) // more)


def _band(graph: Graph, conv: Node, pool: Node, windows: int) -> Layout:
    _, channels, _, columns = graph.shape(conv.outputs[0])
    rows = (windows - 1) * integers(pool, "strides")[0] + integers(pool, "kernel")[0]
    return byte_blocks((1, channels, rows, columns), NO_HALO)
