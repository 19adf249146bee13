"""Convolutions of bytes that floats compute faster become convolutions of floats between two conversions.

That happens where an instruction set multiplies bytes hardly faster than floats, and Winograd's algorithms save floats
more: 3 x 3 on AVX2. The floats are the same integers, rounded once more at the end; sums of floats err by thousandths
of a step, so that a result is another byte only where it lay that near the middle between two. What is chosen depends
on the sizes of one image alone, so that results depend on neither threads nor batches.
"""

from __future__ import annotations

import math
from functools import cache
from typing import cast

import numpy as np
from msgspec.structs import replace

from powerlab.engine.codegen.attributes import number
from powerlab.engine.codegen.convolutions.choosing import applicable, expected_cycles
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shape
from powerlab.engine.codegen.quantized.pack import products_in_16_bits
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.passes.rewriting import Rewriter
from powerlab.engine.program.layout import WORD_BYTES
from powerlab.engine.target.machine import Machine, this_machine
from powerlab.engine.target.tiers import Tier

_PRODUCTS_A_LANE = {1: 1.8, 2: 3.0, 4: 3.8}
"""By how many products fit 16 bits: products a cycle and a float of a vector's width (3 × 3 on AMD Zen 3, AVX2)."""

_CONVERSION_CYCLES = 2.5
"""Of a vector of floats made of bytes, or bytes of floats."""

_WORTH = 0.9
"""What floats must take of the cycles, at most: both figures are estimates."""


def with_faster_floats(graph: Graph, tier: Tier) -> Graph:
    """Return an optimised graph with those convolutions as floats for which that pays on a tier."""
    if not tier.widens_bytes or "QuantConv" not in graph.operators:
        return graph
    machine, rewriter = this_machine(tier, 1), Rewriter(graph)
    nodes, floats = list[Node](), dict[str, str]()

    @cache
    def cycles(shape: ConvShape) -> float:
        return min(expected_cycles(one, shape, machine) for one in applicable(shape, machine))

    for node in graph.nodes:
        shape = _shape(graph, node) if node.op_type == "QuantConv" else None
        most = _WORTH * _byte_cycles(graph, node, shape, machine) if shape else 0.0
        if shape and cycles(shape) + _conversions(shape, machine) < most:
            nodes += _of_floats(graph, rewriter, node, floats)
        else:
            nodes.append(node)
    return rewriter.finish(nodes) if floats else graph


def _shape(graph: Graph, node: Node) -> ConvShape | None:
    """Return the sizes for one image; None of what stays bytes in any case."""
    if node.attributes.get("floats") or len(graph.shape(node.inputs[1])) != 4:
        return None
    shape = replace(conv_shape(graph, node, (node.inputs[0],)), images=1, residual=bool(node.input(4)))
    return None if shape.groups > 1 or shape.taps == 1 or shape.inputs <= WORD_BYTES else shape


def _byte_cycles(graph: Graph, node: Node, shape: ConvShape, machine: Machine) -> float:
    weights = np.asarray(graph.constants[node.inputs[1]], np.int8)
    products = shape.pixels * shape.outputs * shape.inputs * shape.taps
    return products / (_PRODUCTS_A_LANE[products_in_16_bits(weights)] * machine.tier.vector_width)


def _conversions(shape: ConvShape, machine: Machine) -> float:
    floats = shape.inputs * math.prod(shape.in_size) + shape.outputs * shape.pixels * (1 + shape.residual)
    return _CONVERSION_CYCLES * floats / machine.tier.vector_width


def _of_floats(graph: Graph, rewriter: Rewriter, node: Node, floats: dict[str, str]) -> list[Node]:
    """Return the nodes that compute a QuantConv with floats: steps of the input become steps of the output."""
    x, output, nodes = node.inputs[0], node.outputs[0], []
    zero = int(number(node, "x_zero"))
    if x not in floats:
        floats[x] = rewriter.tensor(f"{output}.input", graph.shape(x))
        nodes.append(Node("Dequantize", floats[x], (x,), (floats[x],), {"step": 1.0, "zero": zero}))
    weights, begin, multipliers = (np.asarray(graph.constants[name], np.float64) for name in node.inputs[1:4])
    sums = weights.reshape(len(weights), -1).sum(axis=1)
    constants = (
        rewriter.constant(f"{output}.weights", (weights * multipliers.reshape(-1, 1, 1, 1)).astype(np.float32)),
        rewriter.constant(f"{output}.bias", ((begin + zero * sums) * multipliers).astype(np.float32)),
    )
    made = rewriter.tensor(f"{output}.steps", graph.shape(output))
    sizes = {name: node.attributes[name] for name in ("strides", "pads", "dilations", "group")}
    slope = float(cast("float", node.attributes.get("slope", 1.0)))
    attributes = {**sizes, "clamp": NO_CLAMP, "slope": slope}
    nodes.append(Node("FusedConv", node.name, (floats[x], *constants), (made,), attributes))
    if node.input(4):
        made = _with_residual(graph, rewriter, node, nodes)
    bounds = {name: node.attributes[name] for name in ("zero", "low", "high")}
    nodes.append(Node("Quantize", f"{node.name} to bytes", (made,), (output,), {"step": 1.0, **bounds}))
    return nodes


def _with_residual(graph: Graph, rewriter: Rewriter, node: Node, nodes: list[Node]) -> str:
    """Append the sum with bytes behind the activation, which the convolution will take over, and return its name."""
    output, steps = node.outputs[0], nodes[-1].outputs[0]
    added, total = (rewriter.tensor(f"{output}.{name}", graph.shape(output)) for name in ("residual", "sum"))
    meaning = {"step": number(node, "y_ratio"), "zero": int(number(node, "y_zero"))}
    nodes.append(Node("Dequantize", added, (node.input(4),), (added,), meaning))
    nodes.append(Node("Add", f"{node.name} with residual", (steps, added), (total,), {"clamp": NO_CLAMP}))
    return total
