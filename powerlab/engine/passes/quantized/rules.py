"""What can be computed from bytes: one rule an operator, in :data:`RULES`.

A rule sees the operator, what makes its operands, and how its result becomes bytes (``Target``), and gives the node
that does all of it at once; None: it stays on floats. Multipliers are computed in double precision and kept in single;
how kernels round is written in native/engine/kernels/bytes/requantize.hpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from powerlab.engine.ir.constants import value_of
from powerlab.engine.ir.graph import Array, Node
from powerlab.engine.ops.convolution import conv_windows
from powerlab.engine.ops.pooling import pool_windows
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.scales import QuantizedWeights, Scale, quantized_weights

_IMAGE_AXES, _MATRIX_AXES = 4, 2
_LARGEST_SUM = 2**31 - 1
_LEAST_WEIGHT = -127
"""Two products with -128 may exceed 16 bits, which Arm's kernels without dot products add them in."""


@dataclass(frozen=True, slots=True)
class Target:
    """What an operator's result becomes.

    Attributes:
        output: the tensor that the new node makes.
        name: of the new node.
        scale: of the bytes; None where they stay floats.
        low: the smallest value there may be: an activation's, in floats.
        high: the largest one.
    """

    output: str
    name: str
    scale: Scale | None
    low: float
    high: float

    @property
    def step(self) -> float:
        """Return the step of the bytes; 1 where the result stays floats."""
        return 1.0 if self.scale is None else self.scale.step

    @property
    def is_open(self) -> bool:
        """Tell whether there is no activation."""
        return (self.low, self.high) == (-np.inf, np.inf)

    def attributes(self) -> dict[str, object]:
        """Return the bounds and the zero point as attributes of a node."""
        if self.scale is None:
            return {"low": self.low, "high": self.high, "zero": 0, "floats": True}
        low, high = self.scale.byte(self.low), self.scale.byte(self.high)
        return {"low": float(low - self.scale.zero), "high": float(high - self.scale.zero), "zero": self.scale.zero}


Rule = Callable[[Network, Node, Target], Node | None]


def made_of_bytes(network: Network, node: Node) -> Node | None:
    """Return the node on bytes that makes what ``node``, a QuantizeLinear or an operator on floats, makes."""
    if node.op_type != "QuantizeLinear":
        # Floats that nothing quantizes: a network's last layer.
        if node.op_type not in ("Conv", "Gemm", "MatMul") or _is_quantized(network, node.outputs[0]):
            return None
        target = Target(node.outputs[0], node.name or node.outputs[0], None, -np.inf, np.inf)
        return RULES[node.op_type](network, node, target)
    if node.outputs[0] not in network.bytes:
        return None
    low, high, before = -np.inf, np.inf, network.sole(node.inputs[0])
    while before is not None and before.op_type in ("Relu", "Clip"):
        bounds = (0.0, np.inf) if before.op_type == "Relu" else _clip_bounds(network, before)
        if bounds is None:
            return None
        low, high = min(max(low, bounds[0]), bounds[1]), min(max(high, bounds[0]), bounds[1])
        before = network.sole(before.inputs[0]) or _dequantizing(network, before.inputs[0])
    if before is None or before.op_type not in RULES:
        return None
    target = Target(node.outputs[0], before.name or before.outputs[0], network.bytes[node.outputs[0]], low, high)
    return RULES[before.op_type](network, before, target)


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


def _sums(
    network: Network, target: Target, x: str, weights: QuantizedWeights, bias: str
) -> tuple[str, str, str] | None:
    """Return the constants of sums of products: weights, what sums begin with, multipliers.

    Args:
        network: the graph.
        target: what the sums become.
        x: the bytes that are read.
        weights: those they are multiplied by; outputs go along the first axis.
        bias: name of one number an output, or empty.
    """
    rows = value_of(weights.values)
    scale, outputs, steps = network.bytes[x], len(rows), weights.per_output(len(rows), 0)
    if steps is None or rows.min() < _LEAST_WEIGHT:
        return None
    of_sums = np.float64(scale.step) * steps.astype(np.float64)
    begin = np.zeros(outputs) if not bias else _bias(network, bias)
    if begin is None or begin.shape != (outputs,):
        return None
    flat = rows.reshape(outputs, -1).astype(np.int64)
    begin = np.rint(begin / of_sums) - scale.zero * flat.sum(axis=1)
    if np.max(np.abs(begin) + 255 * np.abs(flat).sum(axis=1)) > _LARGEST_SUM:
        return None
    multipliers = of_sums / target.step
    constants = (
        ("bytes", rows.astype(np.int8)),
        ("begin", begin.astype(np.int32)),
        ("multipliers", multipliers.astype(np.float32)),
    )
    first, second, third = (network.rewriter.constant(f"{target.output}.{stem}", value) for stem, value in constants)
    return first, second, third


def _bias(network: Network, name: str) -> Array | None:
    """Return a bias in floats: a constant, or the dequantized integers of one."""
    value = network.value(name)
    if value is not None:
        return value.astype(np.float64).reshape(-1)
    node = network.producers.get(name)
    if node is None or node.op_type != "DequantizeLinear":
        return None
    found = [network.value(one) for one in node.inputs]
    if any(one is None for one in found) or node.attributes.get("block_size"):
        return None
    values, steps, *zeros = (np.asarray(one, np.float64) for one in found)
    return np.asarray((values - (zeros[0] if zeros else 0)) * steps).reshape(-1)


def _conv(network: Network, node: Node, target: Target) -> Node | None:
    x = network.quantized(node.inputs[0])
    weights = quantized_weights(network.graph, network.producers.get(node.inputs[1]))
    if x is None or weights is None or len(network.sizes(x)) != _IMAGE_AXES:
        return None
    view = NodeView.of(network.graph, node)
    windows = conv_windows(view)
    constants = _sums(network, target, x, weights, node.input(2))
    if constants is None:
        return None
    attributes = {
        "strides": windows.strides,
        "pads": windows.pads_given,
        "dilations": windows.dilations,
        "group": view.integer("group", 1),
        **target.attributes(),
    }
    return Node("QuantConv", target.name, (x, *constants, ""), (target.output,), attributes)


def _gemm(network: Network, node: Node, target: Target) -> Node | None:
    """Take a product with a constant matrix as a convolution of images of one pixel."""
    x = network.quantized(node.inputs[0])
    weights = quantized_weights(network.graph, network.producers.get(node.inputs[1]))
    numbers = {"alpha": 1.0, "beta": 1.0, "transA": 0}
    if x is None or weights is None or any(node.attributes.get(key, value) != value for key, value in numbers.items()):
        return None
    if len(network.sizes(x)) != len(weights.values.shape) or len(weights.values.shape) != _MATRIX_AXES:
        return None
    rows = value_of(weights.values)
    if node.op_type != "Gemm" or not node.attributes.get("transB", 0):
        rows, weights = rows.T, replace(weights, axis=1 - weights.axis)
    kernels = replace(weights, values=np.ascontiguousarray(rows).reshape(*rows.shape, 1, 1))
    constants = _sums(network, target, x, kernels, node.input(2) if node.op_type == "Gemm" else "")
    if constants is None:
        return None
    attributes = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1, **target.attributes()}
    return Node("QuantConv", target.name, (x, *constants, ""), (target.output,), attributes)


def _add(network: Network, node: Node, target: Target) -> Node | None:
    """Add two tensors of one shape; a convolution that only the sum reads takes the other as its residual."""
    if network.sizes(node.inputs[0]) != network.sizes(node.inputs[1]):
        return None
    for tensor, other in (node.inputs, node.inputs[::-1]):
        residual = network.quantized(other)
        if residual is not None:
            conv = _unrounded(network, tensor)
            made = _conv(network, conv, target) if conv is not None else None
            if made is not None:
                scale = network.bytes[residual]
                shared = {"y_zero": scale.zero, "y_ratio": scale.step / target.step}
                return replace(made, inputs=(*made.inputs[:4], residual), attributes={**made.attributes, **shared})
    x, y = (network.quantized(name) for name in node.inputs)
    if x is None or y is None:
        return None
    attributes: dict[str, object] = {
        "x_zero": network.bytes[x].zero,
        "x_ratio": network.bytes[x].step / target.step,
        "y_zero": network.bytes[y].zero,
        "y_ratio": network.bytes[y].step / target.step,
        **target.attributes(),
    }
    return Node("QuantAdd", target.name, (x, y), (target.output,), attributes)


def _unrounded(network: Network, tensor: str) -> Node | None:
    """Return the convolution that makes a tensor, be it quantized in between: nothing else reads it or its bytes."""
    node = network.sole(tensor)
    if node is not None and node.op_type == "DequantizeLinear" and node.inputs[0] in network.bytes:
        node = network.sole(node.inputs[0])
        node = network.sole(node.inputs[0]) if node is not None and node.op_type == "QuantizeLinear" else None
    return node if node is not None and node.op_type == "Conv" else None


def _rescale(network: Network, node: Node, target: Target) -> Node | None:
    """Give bytes another scale, or an activation."""
    x = network.quantized(node.outputs[0])
    if x is None:
        return None
    attributes = {
        "x_zero": network.bytes[x].zero,
        "x_ratio": network.bytes[x].step / target.step,
        **target.attributes(),
    }
    return Node("QuantAdd", target.name, (x,), (target.output,), attributes)


def _max_pool(network: Network, node: Node, target: Target) -> Node | None:
    x, view = network.quantized(node.inputs[0]), NodeView.of(network.graph, node)
    if x is None or len(network.sizes(x)) != _IMAGE_AXES or len([name for name in node.outputs if name]) > 1:
        return None
    if network.bytes[x] != target.scale or not target.is_open:
        return None
    windows = pool_windows(view)
    if set(windows.dilations) != {1}:
        return None
    attributes = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads_given, "kind": "max"}
    return Node("QuantPool", target.name, (x,), (target.output,), {**attributes, "x_zero": 0, **target.attributes()})


def _average_pool(network: Network, node: Node, target: Target) -> Node | None:
    x, view = network.quantized(node.inputs[0]), NodeView.of(network.graph, node)
    if x is None or len(network.sizes(x)) != _IMAGE_AXES:
        return None
    shared = {
        "x_zero": network.bytes[x].zero,
        "x_ratio": network.bytes[x].step / target.step,
        **target.attributes(),
    }
    if node.op_type == "GlobalAveragePool":
        return Node("QuantPool", target.name, (x,), (target.output,), {"kind": "global_average", **shared})
    windows = pool_windows(view)
    if set(windows.dilations) != {1} or view.integer("ceil_mode", 0):
        return None
    attributes = {
        "kernel": windows.kernel,
        "strides": windows.strides,
        "pads": windows.pads_given,
        "count_include_pad": view.integer("count_include_pad", 0),
        "kind": "average",
    }
    return Node("QuantPool", target.name, (x,), (target.output,), {**attributes, **shared})


def _reshape(network: Network, node: Node, target: Target) -> Node | None:
    """See images of one pixel as rows of channels, or the other way round."""
    x = network.quantized(node.inputs[0])
    if x is None or network.bytes[x] != target.scale or not target.is_open:
        return None
    before, after = network.sizes(x), network.sizes(target.output)
    if before[:2] != after[:2] or set(before[2:]) | set(after[2:]) > {1}:
        return None
    return Node("QuantView", target.name, (x,), (target.output,), {})


RULES: dict[str, Rule] = {
    "Add": _add,
    "AveragePool": _average_pool,
    "Conv": _conv,
    "DequantizeLinear": _rescale,
    "Flatten": _reshape,
    "Gemm": _gemm,
    "GlobalAveragePool": _average_pool,
    "MatMul": _gemm,
    "MaxPool": _max_pool,
    "Reshape": _reshape,
    "Squeeze": _reshape,
}
"""Operator → rule."""
