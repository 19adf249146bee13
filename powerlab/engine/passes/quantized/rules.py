"""What can be computed from bytes: one rule an operator, in :data:`RULES`.

A rule sees the operator, what makes its operands, and how its result becomes bytes (``Target``), and gives the node
that does all of it at once; None: it stays on floats. Multipliers are computed in double precision and kept in single;
how kernels round is written in native/engine/kernels/bytes/requantize.hpp.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from powerlab.engine.ir.graph import Node
from powerlab.engine.passes.quantized.layers import (
    average_pool,
    batch_norm,
    concat,
    max_pool,
    multiply,
    rescale,
    reshape,
    resize,
)
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.products import add, conv, gemm, slope_below_0, with_row
from powerlab.engine.passes.quantized.target import Rule, Target


def made_of_bytes(network: Network, node: Node) -> Node | None:
    """Return the node on bytes that makes what ``node``, a QuantizeLinear or an operator on floats, makes."""
    if node.op_type != "QuantizeLinear":
        return _made_floats(network, node)
    if node.outputs[0] not in network.bytes:
        return None
    low, high, slope, before = -np.inf, np.inf, 1.0, network.sole(node.inputs[0])
    while before is not None and before.op_type in ("Relu", "Clip"):
        bounds = (0.0, np.inf) if before.op_type == "Relu" else _clip_bounds(network, before)
        if bounds is None:
            return None
        low, high = min(max(low, bounds[0]), bounds[1]), min(max(high, bounds[0]), bounds[1])
        before = network.sole(before.inputs[0]) or _dequantizing(network, before.inputs[0])
    if before is not None and before.op_type == "LeakyRelu":
        slope, before = slope_below_0(before), _convolution(network.sole(before.inputs[0]))
    if before is None or before.op_type not in RULES:
        return None
    target = Target(node.outputs[0], before.name or before.outputs[0], network.bytes[node.outputs[0]], low, high, slope)
    return RULES[before.op_type](network, before, target)


def _made_floats(network: Network, node: Node) -> Node | None:
    """Return the node that makes floats of bytes which nothing quantizes: a network's last layer."""
    if node.op_type not in ("Add", "Conv", "Gemm", "MatMul") or _is_quantized(network, node.outputs[0]):
        return None
    target = Target(node.outputs[0], node.name or node.outputs[0], None)
    return with_row(network, node, target) if node.op_type == "Add" else RULES[node.op_type](network, node, target)


def _convolution(node: Node | None) -> Node | None:
    return node if node is not None and node.op_type == "Conv" else None


def _dequantizing(network: Network, tensor: str) -> Node | None:
    node = network.producers.get(tensor)
    return node if node is not None and node.op_type == "DequantizeLinear" else None


def _is_quantized(network: Network, tensor: str) -> bool:
    """Tell whether a tensor goes, through activations, to one QuantizeLinear alone."""
    readers = network.readers(tensor)
    while len(readers) == 1 and readers[0].op_type in ("Relu", "Clip"):
        readers = network.readers(readers[0].outputs[0])
    return len(readers) == 1 and readers[0].op_type == "QuantizeLinear" and readers[0].outputs[0] in network.bytes


def _clip_bounds(network: Network, node: Node) -> tuple[float, float] | None:
    low, high = node.attributes.get("min", -np.inf), node.attributes.get("max", np.inf)
    found = [float(cast("float", low)), float(cast("float", high))]
    for index, name in enumerate(node.inputs[1:3]):
        if name:
            value = network.value(name)
            if value is None or value.size != 1:
                return None
            found[index] = float(value.reshape(()))
    return (found[0], found[1]) if found[0] <= found[1] else None


RULES: dict[str, Rule] = {
    "Add": add,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Concat": concat,
    "Conv": conv,
    "DequantizeLinear": rescale,
    "Flatten": reshape,
    "Gemm": gemm,
    "GlobalAveragePool": average_pool,
    "MatMul": gemm,
    "MaxPool": max_pool,
    "Mul": multiply,
    "Reshape": reshape,
    "Resize": resize,
    "Squeeze": reshape,
    "Upsample": resize,
}
"""Operator → rule."""
