"""Rules of convolutions and products with constant weights, and of what is added to them."""

from __future__ import annotations

from functools import partial
from typing import cast

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived, value_of
from powerlab.engine.ir.graph import IMAGE_AXES, VOLUME_AXES, Array, Node
from powerlab.engine.ops.convolution import conv_windows
from powerlab.engine.ops.moving import zeros_around_images
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows, planes_seen
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.scales import QuantizedWeights, quantized_weights
from powerlab.engine.passes.quantized.target import LARGEST_STEPS, Target
from powerlab.engine.target.tiers import native_engine

_MATRIX_AXES = 2
_LARGEST_SUM = 2**31 - 1
_LEAST_WEIGHT = -127
"""Two products with -128 may exceed 16 bits, which Arm's kernels without dot products add them in."""


def slope_below_0(node: Node) -> float:
    """Return what a Relu or LeakyRelu multiplies numbers below 0 by."""
    return 0.0 if node.op_type == "Relu" else float(cast("float", node.attributes.get("alpha", 0.01)))


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
    outputs = weights.values.shape[0]
    scale, steps = network.bytes[x], weights.per_output(outputs, 0)
    if steps is None:
        return None
    of_sums = np.float64(scale.step) * steps.astype(np.float64)
    begin = np.zeros(outputs) if not bias else _bias(network, bias)
    if begin is None or begin.shape != (outputs,):
        return None
    least, sums, absolute = network.scratch.made(lambda: _sums_of_rows(value_of(weights.values)))
    if least.min() < _LEAST_WEIGHT:
        return None
    begin = np.rint(begin / of_sums) - scale.zero * sums
    largest, multipliers = np.abs(begin) + 255 * absolute, of_sums / target.step
    if np.max(largest) > _LARGEST_SUM or np.max(largest * multipliers) > LARGEST_STEPS:
        return None
    constants = (
        ("bytes", weights.values),
        ("begin", begin.astype(np.int32)),
        ("multipliers", multipliers.astype(np.float32)),
    )
    first, second, third = (network.rewriter.constant(f"{target.output}.{stem}", value) for stem, value in constants)
    return first, second, third


def _sums_of_rows(weights: Array) -> Array:
    """Return three rows, with for each output of signed bytes: the least of all, its sum, that of absolute values."""
    found = np.empty((3, len(weights)), np.int64)
    found[0] = weights.min()
    native_engine().sum_rows(rows=weights.reshape(len(weights), -1), sums=found[1], absolute=found[2])
    return found


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


def conv(network: Network, node: Node, target: Target) -> Node | None:
    """Convolve bytes with constant weights."""
    x = network.quantized(node.inputs[0])
    weights = quantized_weights(network.graph, network.producers.get(node.inputs[1]))
    if x is None or weights is None or len(network.sizes(x)) not in (IMAGE_AXES, VOLUME_AXES):
        return None
    view = NodeView.of(network.graph, node)
    windows = conv_windows(view)
    is_volume = len(network.sizes(x)) == VOLUME_AXES
    if is_volume and not _is_plain(windows, view, network.sizes(x)[2]):
        return None
    x, pads = (x, windows.pads_given) if is_volume else _without_pad(network, x, windows.pads_given)
    constants = _sums(network, target, x, weights, node.input(2))
    if constants is None:
        return None
    attributes = {
        "strides": windows.strides,
        "pads": pads,
        "dilations": windows.dilations,
        "group": view.integer("group", 1),
        "x_zero": network.bytes[x].zero,
        **target.attributes(),
    }
    kind = "QuantVolumeConv" if is_volume else "QuantConv"
    return Node(kind, target.name, (x, *constants, ""), (target.output,), attributes)


def _is_plain(windows: Windows, view: NodeView, planes: int) -> bool:
    """Tell whether planes under a kernel are neighbours, each window sees one, and there is one group."""
    seen = planes_seen(planes, windows.size[0], windows.kernel[0], windows.strides[0], windows.pads[0])
    return view.integer("group", 1) == 1 and windows.dilations[0] == 1 and all(part.taps for part in seen)


def _without_pad(network: Network, x: str, pads: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return the bytes before a Pad of images, in the same steps, and pads with what it adds."""
    pad = network.producers.get(network.producers[x].inputs[0])
    added = zeros_around_images(NodeView.of(network.graph, pad)) if pad is not None and pad.op_type == "Pad" else None
    if pad is None or added is None:
        return x, pads
    floats, scale = pad.inputs[0], network.bytes[x]
    inside = network.quantized(floats)
    if inside is None or network.bytes[inside] != scale:
        inside = network.new_bytes(f"{x}.inside", network.sizes(floats), scale)
        attributes = {"step": scale.step, "zero": scale.zero}
        network.added[inside] = Node("Quantize", inside, (floats,), (inside,), attributes)
    return inside, tuple(own + more for own, more in zip(pads, added, strict=True))


def gemm(network: Network, node: Node, target: Target, bias: str = "") -> Node | None:
    """Take a product with a constant matrix as a convolution of images of one pixel."""
    x = network.quantized(node.inputs[0])
    weights = quantized_weights(network.graph, network.producers.get(node.inputs[1]))
    numbers = {"alpha": 1.0, "beta": 1.0, "transA": 0}
    if x is None or weights is None or any(node.attributes.get(key, value) != value for key, value in numbers.items()):
        return None
    if len(network.sizes(x)) != len(weights.values.shape) or len(weights.values.shape) != _MATRIX_AXES:
        return None
    turned = node.op_type != "Gemm" or not node.attributes.get("transB", 0)
    outputs, inputs = weights.values.shape[::-1] if turned else weights.values.shape
    kernels = QuantizedWeights(
        derived(weights.values, (outputs, inputs, 1, 1), partial(_as_kernels, turned=turned)),
        weights.steps,
        1 - weights.axis if turned else weights.axis,
    )
    constants = _sums(network, target, x, kernels, node.input(2) if node.op_type == "Gemm" else bias)
    if constants is None:
        return None
    attributes = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1, **target.attributes()}
    return Node("QuantConv", target.name, (x, *constants, ""), (target.output,), attributes)


def _as_kernels(matrix: Array, *, turned: bool) -> Array:
    rows = matrix.T if turned else matrix
    return rows.reshape(*rows.shape, 1, 1)


def with_row(network: Network, node: Node, target: Target) -> Node | None:
    """Take what is added to every row of a product with a constant matrix as its bias."""
    for tensor, bias in (node.inputs, node.inputs[::-1]):
        product, value = network.sole(tensor), network.value(bias)
        if product is None or value is None or product.op_type != "MatMul":
            continue
        if value.shape == network.sizes(tensor)[-1:]:
            return gemm(network, product, target, bias)
    return None


def add(network: Network, node: Node, target: Target) -> Node | None:
    """Add two tensors of one shape; a convolution that only the sum reads takes the other as its residual."""
    product = with_row(network, node, target)
    if product is not None:
        return product
    if network.sizes(node.inputs[0]) != network.sizes(node.inputs[1]):
        return None
    for tensor, other in (node.inputs, node.inputs[::-1]):
        residual = network.quantized(other)
        if residual is not None:
            unrounded, slope = _unrounded(network, tensor)
            made = conv(network, unrounded, replace(target, slope=slope)) if unrounded is not None else None
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


def _unrounded(network: Network, tensor: str) -> tuple[Node | None, float]:
    """Return the convolution that makes a tensor, be it quantized in between, and the slope of its activation.

    None where it is no convolution's, or something else reads it or its bytes.
    """
    node = network.sole(tensor)
    if node is not None and node.op_type == "DequantizeLinear" and node.inputs[0] in network.bytes:
        node = network.sole(node.inputs[0])
        node = network.sole(node.inputs[0]) if node is not None and node.op_type == "QuantizeLinear" else None
    slope = 1.0
    if node is not None and node.op_type in ("Relu", "LeakyRelu"):
        slope, node = slope_below_0(node), network.sole(node.inputs[0])
    return (node, slope) if node is not None and node.op_type == "Conv" else (None, slope)
