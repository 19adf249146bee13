"""Nodes on floats as TFLite says them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from powerlab.backends.tflite.writer import LOWEST, TO_CHANNELS_FIRST, TO_CHANNELS_LAST, Array, Writer, last
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Node
from powerlab.engine.ops.activation import NO_CLAMP


def _conv(writer: Writer, node: Node) -> None:
    weights, bias, residual = (node.input(index) for index in (1, 2, 3))
    values = writer.graph.constants[weights]
    outputs, inner, *kernel = values.shape
    (stride_h, stride_w), dilations = integers(node, "strides"), integers(node, "dilations")
    x, padding = writer.windows(node, kernel, dilations)
    depthwise = inner == 1 and int(number(node, "group")) == writer.shape(x)[3] > 1
    fields = {"padding": padding, "strideH": stride_h, "strideW": stride_w}
    fields |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
    if depthwise:
        kind, order = "DEPTHWISE_CONV_2D", (1, 2, 3, 0)
        fields["depthMultiplier"] = outputs // writer.shape(x)[3]
    else:
        kind, order = "CONV_2D", (0, 2, 3, 1)
    offsets = writer.graph.constants[bias] if bias else np.zeros(outputs, np.float32)
    inputs = (x, writer.constant(node, "kernel", values.transpose(order)), writer.constant(node, "bias", offsets))

    def convolve(activation: int, output: int) -> None:
        table = "DepthwiseConv2D" if depthwise else "Conv2D"
        writer.emit(kind, inputs, output, writer.options(table, fusedActivationFunction=activation, **fields))

    if not residual:
        writer.clamped(node, convolve)
        return
    convolved = writer.between(node, "convolved", writer.shape(writer.of_graph(node.outputs[0])))
    convolve(writer.schema.ActivationFunctionType.NONE, convolved)
    _sum(writer, node, (convolved, writer.of_graph(residual)))


def _sum(writer: Writer, node: Node, inputs: tuple[int, ...]) -> None:
    writer.clamped(
        node,
        lambda activation, output: writer.emit(
            "ADD", inputs, output, writer.options("Add", fusedActivationFunction=activation)
        ),
    )


def _gemm(writer: Writer, node: Node) -> None:
    x, weight, bias = node.inputs[0], node.inputs[1], node.input(2)
    values = writer.graph.constants[weight]
    offsets = writer.graph.constants[bias] if bias else np.zeros(values.shape[0], np.float32)
    inputs = (writer.of_graph(x), writer.constant(node, "weights", values), writer.constant(node, "bias", offsets))
    writer.clamped(
        node,
        lambda activation, output: writer.emit(
            "FULLY_CONNECTED", inputs, output, writer.options("FullyConnected", fusedActivationFunction=activation)
        ),
    )


def _add(writer: Writer, node: Node) -> None:
    _sum(writer, node, tuple(writer.of_graph(name) for name in node.inputs))


def _clamp(writer: Writer, node: Node) -> None:
    kinds = writer.schema.ActivationFunctionType
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    word = {kinds.RELU: "RELU", kinds.RELU6: "RELU6"}.get(writer.activation(node))
    if word is not None:
        writer.emit(word, (source,), output)
    else:
        writer.clamp(node, source)


def _multiply(writer: Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    writer.clamped(
        node,
        lambda activation, output: writer.emit(
            "MUL", inputs, output, writer.options("Mul", fusedActivationFunction=activation)
        ),
    )


def _function(writer: Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    options = writer.options("Gelu", approximate=False) if node.op_type == "Gelu" else None
    writer.emit(_FUNCTIONS[node.op_type], (source,), output, options)


def _elu(writer: Writer, node: Node) -> None:
    if number(node, "alpha") != 1:
        raise PowerlabError(f"{node} has the alpha {number(node, 'alpha'):g}; LiteRT has this function for 1 alone.")
    writer.emit("ELU", (writer.of_graph(node.inputs[0]),), writer.of_graph(node.outputs[0]))


def _silu(writer: Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    gate = writer.between(node, "gate", writer.shape(output))
    writer.emit("LOGISTIC", (source,), gate)
    writer.emit("MUL", (source, gate), output, writer.options("Mul"))


def _hard_sigmoid(writer: Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    numbers = {"slope": number(node, "alpha"), "shift": number(node, "beta"), "low": 0.0, "high": 1.0}
    for label, kind, table in (("slope", "MUL", "Mul"), ("shift", "ADD", "Add"), ("low", "MAXIMUM", None)):
        made = writer.between(node, f"after {label}", writer.shape(output))
        constant = writer.constant(node, label, np.array(numbers[label]))
        writer.emit(kind, (source, constant), made, None if table is None else writer.options(table))
        source = made
    writer.emit("MINIMUM", (source, writer.constant(node, "high", np.array(numbers["high"]))), output)


def _scale_shift(writer: Writer, node: Node) -> None:
    x, scale, shift = node.inputs
    source = writer.of_graph(x)
    rank = len(writer.shape(source))
    axes = (1,) * (rank - 1) + (-1,) if rank in (2, 4) else (1, -1, *(1,) * (rank - 2))
    factors, summands = (writer.graph.constants[name].reshape(axes) for name in (scale, shift))
    scaled = writer.between(node, "scaled", writer.shape(source))
    writer.emit("MUL", (source, writer.constant(node, "scale", factors)), scaled, writer.options("Mul"))
    _sum(writer, node, (scaled, writer.constant(node, "shift", summands)))


def pool_options(writer: Writer, node: Node, padding: int) -> Any:
    """Return the options of a pool with kernel and strides, on floats or bytes."""
    (height, width), (stride_h, stride_w) = integers(node, "kernel"), integers(node, "strides")
    sizes = {"filterHeight": height, "filterWidth": width, "strideH": stride_h, "strideW": stride_w}
    return writer.options("Pool2D", padding=padding, **sizes)


def _max_pool(writer: Writer, node: Node) -> None:
    """Zeros around an image that is never negative change no maximum, and TFLite pads with zeros best."""
    made_by = writer.graph.producers().get(node.inputs[0])
    low, _ = cast("tuple[float, float]", made_by.attributes.get("clamp", NO_CLAMP)) if made_by else NO_CLAMP
    fill = None if low >= 0 else np.array(LOWEST)
    x, padding = writer.windows(node, integers(node, "kernel"), fill=fill)
    writer.emit("MAX_POOL_2D", (x,), writer.of_graph(node.outputs[0]), pool_options(writer, node, padding))


def _average_pool(writer: Writer, node: Node) -> None:
    """TFLite's SAME does not count the padding; other padding is put around first and then counts."""
    kernel, counts = integers(node, "kernel"), bool(node.attributes["count_include_pad"])
    output, pads = writer.of_graph(node.outputs[0]), integers(node, "pads")
    x, padding = writer.windows(node, kernel)
    if counts and padding == writer.schema.Padding.SAME:
        x, padding = writer.padded(node, x, pads, None), writer.schema.Padding.VALID
    kind, options = "AVERAGE_POOL_2D", pool_options(writer, node, padding)
    if counts or not any(pads) or padding == writer.schema.Padding.SAME:
        writer.emit(kind, (x,), output, options)
        return
    mean = writer.between(node, "mean", writer.shape(output))
    writer.emit(kind, (x,), mean, options)
    share = writer.constant(node, "share", _counted_share(node, writer.graph.shape(node.inputs[0])[2:]))
    writer.emit("MUL", (mean, share), output, writer.options("Mul"))


def _counted_share(node: Node, image: tuple[int, ...]) -> Array:
    """Return, for every window, its pixels over those that lie on the image: (1, height, width, 1)."""
    top, left, bottom, right = integers(node, "pads")
    counts = []
    for size, before, after, taps, step in zip(
        image, (top, left), (bottom, right), integers(node, "kernel"), integers(node, "strides"), strict=True
    ):
        starts = np.arange(0, size + before + after - taps + 1, step) - before
        counts.append(np.minimum(starts + taps, size) - np.maximum(starts, 0))
    taps_h, taps_w = integers(node, "kernel")
    return (taps_h * taps_w / np.outer(*counts)).astype(np.float32)[None, :, :, None]


def _global_average_pool(writer: Writer, node: Node) -> None:
    inputs = (writer.of_graph(node.inputs[0]), writer.constant(node, "axes", np.array([1, 2])))
    writer.emit("MEAN", inputs, writer.of_graph(node.outputs[0]), writer.options("Reducer", keepDims=True))


def _lrn(writer: Writer, node: Node) -> None:
    size = int(number(node, "size"))
    if size % 2 == 0:
        raise PowerlabError(f"{node} normalises over {size} channels, and LiteRT over odd numbers of them alone.")
    options = writer.options(
        "LocalResponseNormalization",
        radius=size // 2,
        alpha=number(node, "alpha") / size,
        beta=number(node, "beta"),
        bias=number(node, "bias"),
    )
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    writer.emit("LOCAL_RESPONSE_NORMALIZATION", (source,), output, options)


def resize(writer: Writer, node: Node) -> None:
    """Repeat pixels, of floats or bytes."""
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    size = writer.constant(node, "size", np.array(writer.shape(output)[1:3]))
    writer.emit("RESIZE_NEAREST_NEIGHBOR", (source, size), output, writer.options("ResizeNearestNeighbor"))


def _softmax(writer: Writer, node: Node) -> None:
    shape = writer.graph.shape(node.outputs[0])
    if _axis(node, shape) != len(shape) - 1:
        raise PowerlabError(f"{node} works along axis {node.attributes['axis']} of {shape}; LiteRT takes the last one.")
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    writer.emit("SOFTMAX", (source,), output, writer.options("Softmax", beta=1.0))


def _concat(writer: Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    options = writer.options("Concatenation", axis=_axis(node, writer.graph.shape(node.outputs[0])))
    writer.emit("CONCATENATION", inputs, writer.of_graph(node.outputs[0]), options)


def _axis(node: Node, shape: tuple[int, ...]) -> int:
    """Return the node's axis in TFLite's order."""
    axis = int(number(node, "axis")) % len(shape)
    return TO_CHANNELS_LAST.index(axis) if len(shape) == 4 else axis


def _reshape(writer: Writer, node: Node) -> None:
    """Elements keep ONNX's order, so images of more than a pixel have their channels put first meanwhile."""
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    before, after = writer.graph.shape(node.inputs[0]), writer.graph.shape(node.outputs[0])
    if _moves(before):
        source = writer.transposed(node, "channels first", source, TO_CHANNELS_FIRST)
    made = writer.between(node, "reshaped", after) if _moves(after) else output
    shape = after if _moves(after) else last(after)
    options = writer.options("Reshape", newShape=list(shape))
    writer.emit("RESHAPE", (source, writer.constant(node, "shape", np.array(shape))), made, options)
    if _moves(after):
        order = writer.constant(node, "order", np.array(TO_CHANNELS_LAST))
        writer.emit("TRANSPOSE", (made, order), output, writer.options("Transpose"))


def _transpose(writer: Writer, node: Node) -> None:
    order = integers(node, "perm")
    if len(order) == 4:
        order = tuple(TO_CHANNELS_LAST.index(order[axis]) for axis in TO_CHANNELS_LAST)
    inputs = writer.of_graph(node.inputs[0]), writer.constant(node, "order", np.array(order))
    writer.emit("TRANSPOSE", inputs, writer.of_graph(node.outputs[0]), writer.options("Transpose"))


def _moves(shape: tuple[int, ...]) -> bool:
    """Tell whether elements of this shape change their order when channels go last."""
    return len(shape) == 4 and shape[1] > 1 and math.prod(shape[2:]) > 1


_FUNCTIONS = {
    "Exp": "EXP",
    "Gelu": "GELU",
    "HardSwish": "HARD_SWISH",
    "Sigmoid": "LOGISTIC",
    "Tanh": "TANH",
}
"""Functions of one number and TFLite's operator for each."""

FLOATS: dict[str, Callable[[Writer, Node], None]] = {
    "Add": _add,
    "AveragePool": _average_pool,
    "Clamp": _clamp,
    "Concat": _concat,
    "Elu": _elu,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "HardSigmoid": _hard_sigmoid,
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Multiply": _multiply,
    "Reshape": _reshape,
    "Resize": resize,
    "ScaleShift": _scale_shift,
    "Silu": _silu,
    "Softmax": _softmax,
    "Transpose": _transpose,
    **dict.fromkeys(_FUNCTIONS, _function),
}
