"""Rules of operators without weights of their own, or with numbers a channel: pools, concatenations, views."""

from __future__ import annotations

import numpy as np

from powerlab.engine.ir.graph import IMAGE_AXES, Array, Node
from powerlab.engine.ops.moving import concat_axis
from powerlab.engine.ops.pooling import pool_windows
from powerlab.engine.ops.resizing import resizing, whole_factors
from powerlab.engine.ops.view import NodeView
from powerlab.engine.passes.quantized.network import Network
from powerlab.engine.passes.quantized.target import LARGEST_STEPS, Target
from powerlab.engine.program.layout import BYTE_BLOCK


def _from(network: Network, x: str, target: Target) -> dict[str, object]:
    """Return zero point and scale of bytes in steps of the target."""
    return {"x_zero": network.bytes[x].zero, "x_ratio": network.bytes[x].step / target.step}


def rescale(network: Network, node: Node, target: Target) -> Node | None:
    """Give bytes another scale, or an activation."""
    x = network.quantized(node.outputs[0])
    if x is None:
        return None
    attributes = {**_from(network, x, target), **target.attributes()}
    return Node("QuantAdd", target.name, (x,), (target.output,), attributes)


def max_pool(network: Network, node: Node, target: Target) -> Node | None:
    """Keep the largest byte of a window: scales are the same."""
    x, view = network.quantized(node.inputs[0]), NodeView.of(network.graph, node)
    if x is None or len(network.sizes(x)) != IMAGE_AXES or len([name for name in node.outputs if name]) > 1:
        return None
    if network.bytes[x] != target.scale or not target.is_open:
        return None
    windows = pool_windows(view)
    if set(windows.dilations) != {1}:
        return None
    attributes = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads_given, "kind": "max"}
    return Node("QuantPool", target.name, (x,), (target.output,), {**attributes, "x_zero": 0, **target.attributes()})


def average_pool(network: Network, node: Node, target: Target) -> Node | None:
    """Average windows, or whole planes."""
    x, view = network.quantized(node.inputs[0]), NodeView.of(network.graph, node)
    if x is None or len(network.sizes(x)) != IMAGE_AXES:
        return None
    shared = {**_from(network, x, target), **target.attributes()}
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


def reshape(network: Network, node: Node, target: Target) -> Node | None:
    """See images of one pixel as rows of channels, or the other way round."""
    x = network.quantized(node.inputs[0])
    if x is None or network.bytes[x] != target.scale or not target.is_open:
        return None
    before, after = network.sizes(x), network.sizes(target.output)
    if before[:2] != after[:2] or {*before[2:], *after[2:]} - {1}:
        return None
    return Node("QuantView", target.name, (x,), (target.output,), {})


def concat(network: Network, node: Node, target: Target) -> Node | None:
    """Join channels of images where each begins with a block; what has another scale gets that of the whole before."""
    axis, sizes = concat_axis(NodeView.of(network.graph, node)), [network.sizes(name) for name in node.inputs]
    if axis != 1 or len(sizes[0]) != IMAGE_AXES or any(size[1] % BYTE_BLOCK for size in sizes[:-1]):
        return None
    parts = [network.quantized(name) for name in node.inputs]
    if not target.is_open or target.scale is None or None in parts:
        return None
    joined = []
    for part in filter(None, parts):
        if network.bytes[part] == target.scale:
            joined.append(part)
            continue
        made = network.new_bytes(f"{target.output}.part", network.sizes(part), target.scale)
        attributes = {**_from(network, part, target), **target.attributes()}
        network.added[made] = Node("QuantAdd", made, (part,), (made,), attributes)
        joined.append(made)
    return Node("QuantConcat", target.name, tuple(joined), (target.output,), {"axis": 1, **target.attributes()})


def batch_norm(network: Network, node: Node, target: Target) -> Node | None:
    """Multiply each channel by a number and add one: those of steps."""
    x, numbers = network.quantized(node.inputs[0]), [network.value(name) for name in node.inputs[1:5]]
    view = NodeView.of(network.graph, node)
    if x is None or len(network.sizes(x)) != IMAGE_AXES or view.integer("training_mode", 0):
        return None
    if any(one is None for one in numbers):
        return None
    gamma, beta, mean, variance = (np.asarray(one, np.float64) for one in numbers)
    factor = gamma / np.sqrt(variance + view.number("epsilon", 1e-5))
    return _scaled(network, x, target, factor, beta - mean * factor)


def multiply(network: Network, node: Node, target: Target) -> Node | None:
    """Multiply each channel by a number, as layer scale does."""
    constants = [name for name in node.inputs if network.value(name) is not None]
    if len(constants) != 1:
        return None
    (constant,), (source,) = constants, (name for name in node.inputs if name not in constants)
    x, values = network.quantized(source), np.asarray(network.value(constant), np.float64)
    if x is None or len(network.sizes(x)) != IMAGE_AXES:
        return None
    channels = network.sizes(x)[1]
    if channels == 1 or values.shape not in ((channels, 1, 1), (1, channels, 1, 1)):
        return None
    return _scaled(network, x, target, values.reshape(-1), np.zeros(channels))


def _scaled(network: Network, x: str, target: Target, factor: Array, summand: Array) -> Node | None:
    """Return what multiplies each channel of bytes and adds to it; None where that makes too many steps."""
    step, zero = network.bytes[x].step, network.bytes[x].zero
    values = {"factors": factor * step / target.step, "shifts": (summand - zero * step * factor) / target.step}
    if np.max(255 * np.abs(values["factors"]) + np.abs(values["shifts"])) > LARGEST_STEPS:
        return None
    constants = [
        network.rewriter.constant(f"{target.output}.{stem}", value.astype(np.float32)) for stem, value in values.items()
    ]
    return Node("QuantScale", target.name, (x, *constants), (target.output,), target.attributes())


def resize(network: Network, node: Node, target: Target) -> Node | None:
    """Repeat pixels."""
    x = network.quantized(node.inputs[0])
    if x is None or len(network.sizes(x)) != IMAGE_AXES or network.bytes[x] != target.scale or not target.is_open:
        return None
    factors = whole_factors(resizing(NodeView.of(network.graph, node)))
    if factors is None:
        return None
    return Node("QuantResize", target.name, (x,), (target.output,), {"factors": factors, **target.attributes()})
