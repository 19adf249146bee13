"""Nodes on bytes as TFLite says them.

TFLite rounds after each of its operators, powerlab once behind a convolution, its residual and its activation. So the
integers are not the same everywhere, though all are in the same steps. Source: the 8-bit quantization specification of
TensorFlow Lite (https://ai.google.dev/edge/litert/conversion/tensorflow/quantization/quantization_spec).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from powerlab.backends.tflite.floats import pool_options, resize
from powerlab.backends.tflite.writer import SIGN, Quantization, Writer
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Node
from powerlab.engine.passes.quantized.scales import Scale

_LARGEST_BYTE = 255
_LARGEST_WEIGHT = 127
_LARGEST_SUM = 2**31 - 1
_MATRIX_AXES = 2


def _clamped(writer: Writer, node: Node, emit: Callable[[int, int], None]) -> None:
    """Let ``emit`` add an operator with (activation, output), and bounds without a word as operators after it."""
    zero, kinds = writer.scales[node.outputs[0]].zero, writer.schema.ActivationFunctionType
    low, high = number(node, "low") + zero, number(node, "high") + zero
    output = writer.of_graph(node.outputs[0])
    if high >= _LARGEST_BYTE and low in (0, zero):
        emit(kinds.NONE if low == 0 else kinds.RELU, output)
        return
    shape, quantization = writer.shape(output), writer.quantization(output)
    source, above = (writer.between(node, label, shape, quantization) for label in ("unclamped", "above"))
    emit(kinds.NONE, source)
    for kind, bound, target in (("MAXIMUM", low, above), ("MINIMUM", high, output)):
        byte = np.array(min(max(int(bound), 0), _LARGEST_BYTE) - SIGN, np.int8)
        writer.emit(kind, (source, writer.constant(node, kind.lower(), byte, quantization)), target)
        source = target


def _clamped_after(writer: Writer, node: Node, emit: Callable[[int], None]) -> None:
    """Let ``emit`` add an operator that has no activation with its output; the node's bounds come after it."""

    def with_activation(activation: int, output: int) -> None:
        if activation == writer.schema.ActivationFunctionType.NONE:
            emit(output)
            return
        made = writer.between(node, "before the activation", writer.shape(output), writer.quantization(output))
        emit(made)
        writer.emit("RELU", (made,), output)

    _clamped(writer, node, with_activation)


def _conv(writer: Writer, node: Node) -> None:
    """Convolve, then take the slope, then add the residual: three operators at most."""
    if node.attributes.get("floats"):
        raise PowerlabError(f"{node} makes floats of bytes, which LiteRT does not; use another engine for this model.")
    residual, slope = node.input(4), cast("float", node.attributes.get("slope", 1.0))
    made = writer.scales[node.outputs[0]]
    summand = _before_sum(made, writer.scales[residual]) if residual else made
    convolved = _before_slope(summand, slope) if slope != 1 else summand
    convolve = _convolving(writer, node)
    if convolved is made:
        _clamped(writer, node, convolve)
        return
    shape = writer.shape(writer.of_graph(node.outputs[0]))
    source = writer.between(node, "convolved", shape, Quantization.of(convolved))
    convolve(writer.schema.ActivationFunctionType.NONE, source)
    leaky = writer.options("LeakyRelu", alpha=slope)
    if not residual:
        _clamped_after(writer, node, lambda output: writer.emit("LEAKY_RELU", (source,), output, leaky))
        return
    if slope != 1:
        sloped = writer.between(node, "sloped", shape, Quantization.of(summand))
        writer.emit("LEAKY_RELU", (source,), sloped, leaky)
        source = sloped
    _sum(writer, node, (source, writer.of_graph(residual)))


def _convolving(writer: Writer, node: Node) -> Callable[[int, int], None]:
    """Return what adds the convolution, or what is fully connected, with (activation, output)."""
    x, weights, begin, multipliers = node.inputs[:4]
    values = writer.graph.constants[weights]
    outputs, inner, *kernel = values.shape
    taps = values.reshape(outputs, -1).sum(axis=1, dtype=np.int64)
    bias = writer.graph.constants[begin] + writer.scales[x].zero * taps
    of_sums = writer.graph.constants[multipliers].astype(np.float64) * writer.scales[node.outputs[0]].step
    fields: dict[str, object] = {}
    if len(writer.graph.shape(x)) == _MATRIX_AXES:
        source, laid, axis = writer.of_graph(x), values.reshape(outputs, inner), 0
        kind, table = "FULLY_CONNECTED", "FullyConnected"
    else:
        (stride_h, stride_w), dilations = integers(node, "strides"), integers(node, "dilations")
        source, padding = writer.windows(node, kernel, dilations)
        fields |= {"padding": padding, "strideH": stride_h, "strideW": stride_w}
        fields |= {"dilationHFactor": dilations[0], "dilationWFactor": dilations[1]}
        channels = writer.shape(source)[3]
        if inner == 1 and int(number(node, "group")) == channels > 1:
            kind, table, laid, axis = "DEPTHWISE_CONV_2D", "DepthwiseConv2D", values.transpose(1, 2, 3, 0), 3
            fields["depthMultiplier"] = outputs // channels
        else:
            kind, table, laid, axis = "CONV_2D", "Conv2D", values.transpose(0, 2, 3, 1), 0
    steps = of_sums / writer.scales[x].step
    inputs = (
        source,
        writer.constant(node, "kernel", laid.astype(np.int8), Quantization(tuple(steps), 0, axis)),
        writer.constant(node, "bias", bias.astype(np.int32), Quantization(tuple(of_sums), 0)),
    )

    def convolve(activation: int, output: int) -> None:
        writer.emit(kind, inputs, output, writer.options(table, fusedActivationFunction=activation, **fields))

    return convolve


def _before_sum(made: Scale, residual: Scale) -> Scale:
    """Return the scale of what a residual is added to: from the least sum less the largest residual, and so on."""
    (low, high), (least, largest) = _range(made), _range(residual)
    return _spanning(low - largest, high - least)


def _before_slope(made: Scale, slope: float) -> Scale:
    """Return the scale of numbers of which those below 0 are multiplied by ``slope``, which is 0 or more."""
    low, high = _range(made)
    return _spanning(low / slope if slope > 0 else 0.0, high)


def _range(scale: Scale) -> tuple[float, float]:
    return -scale.zero * scale.step, (_LARGEST_BYTE - scale.zero) * scale.step


def _spanning(low: float, high: float) -> Scale:
    """Return the scale whose bytes reach from ``low``, 0 or less, to ``high``, and have 0 exactly."""
    step = (high - low) / _LARGEST_BYTE
    return Scale(step, round(-low / step))


def _sum(writer: Writer, node: Node, inputs: tuple[int, ...]) -> None:
    _clamped(
        writer,
        node,
        lambda activation, output: writer.emit(
            "ADD", inputs, output, writer.options("Add", fusedActivationFunction=activation)
        ),
    )


def _add(writer: Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    if len(inputs) == 1:
        _requantized(writer, node, inputs[0])
    else:
        _sum(writer, node, inputs)


def _requantized(writer: Writer, node: Node, source: int) -> None:
    """Give bytes the scale of what a node makes."""
    options = writer.options("Quantize")
    _clamped_after(writer, node, lambda output: writer.emit("QUANTIZE", (source,), output, options))


def _scale(writer: Writer, node: Node) -> None:
    """Multiply each channel by a number and add one: a depthwise convolution of one weight, 127 or -127 steps."""
    x, factors, shifts = node.inputs
    source, zero = writer.of_graph(x), writer.scales[x].zero
    factor, shift = (writer.graph.constants[name].astype(np.float64) for name in (factors, shifts))
    unit = np.where(factor == 0, 1.0, np.abs(factor)) / _LARGEST_WEIGHT
    weights, bias = np.sign(factor) * _LARGEST_WEIGHT, np.rint((shift + zero * factor) / unit)
    if np.max(np.abs(bias)) > _LARGEST_SUM:
        raise PowerlabError(f"{node} adds numbers that are too large for LiteRT; use another engine for this model.")
    of_sums = unit * writer.scales[node.outputs[0]].step
    steps = of_sums / writer.scales[x].step
    shape = (1, 1, 1, -1)
    inputs = (
        source,
        writer.constant(node, "factors", weights.reshape(shape).astype(np.int8), Quantization(tuple(steps), 0, 3)),
        writer.constant(node, "shifts", bias.astype(np.int32), Quantization(tuple(of_sums), 0)),
    )
    fields = {"padding": writer.schema.Padding.VALID, "strideH": 1, "strideW": 1, "depthMultiplier": 1}
    fields |= {"dilationHFactor": 1, "dilationWFactor": 1}

    def multiply(activation: int, output: int) -> None:
        options = writer.options("DepthwiseConv2D", fusedActivationFunction=activation, **fields)
        writer.emit("DEPTHWISE_CONV_2D", inputs, output, options)

    _clamped(writer, node, multiply)


def _pool(writer: Writer, node: Node) -> None:
    if node.attributes["kind"] == "global_average":
        inputs = (writer.of_graph(node.inputs[0]), writer.constant(node, "axes", np.array([1, 2])))
        keep = writer.options("Reducer", keepDims=True)
        _clamped_after(writer, node, lambda output: writer.emit("MEAN", inputs, output, keep))
        return
    largest = node.attributes["kind"] == "max"
    fill = np.array(-SIGN, np.int8) if largest else None
    source, padding = writer.windows(node, integers(node, "kernel"), fill=fill)
    options = pool_options(writer, node, padding)
    output = writer.of_graph(node.outputs[0])
    if largest:
        writer.emit("MAX_POOL_2D", (source,), output, options)
        return
    is_same = padding == writer.schema.Padding.SAME  # which leaves out what is beyond the image
    if any(integers(node, "pads")) and bool(node.attributes["count_include_pad"]) == is_same:
        raise PowerlabError(f"{node} averages beyond its image in a way that LiteRT does not; use another engine.")
    mean = writer.between(node, "mean", writer.shape(output), writer.quantization(source))
    writer.emit("AVERAGE_POOL_2D", (source,), mean, options)
    _requantized(writer, node, mean)


def _concat(writer: Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    output = writer.of_graph(node.outputs[0])
    options = writer.options("Concatenation", axis=len(writer.shape(output)) - 1)
    writer.emit("CONCATENATION", inputs, output, options)


def _view(writer: Writer, node: Node) -> None:
    source, output = (writer.of_graph(name) for name in (node.inputs[0], node.outputs[0]))
    shape = writer.shape(output)
    options = writer.options("Reshape", newShape=list(shape))
    writer.emit("RESHAPE", (source, writer.constant(node, "shape", np.array(shape))), output, options)


def _convert(writer: Writer, node: Node) -> None:
    """Make bytes of floats, or floats of bytes."""
    source, output = (writer.of_graph(name) for name in (node.inputs[0], node.outputs[0]))
    writer.emit(node.op_type.upper(), (source,), output, writer.options(node.op_type))


QUANTIZED: dict[str, Callable[[Writer, Node], None]] = {
    "Dequantize": _convert,
    "QuantAdd": _add,
    "QuantConcat": _concat,
    "QuantConv": _conv,
    "QuantPool": _pool,
    "QuantResize": resize,
    "QuantScale": _scale,
    "QuantView": _view,
    "Quantize": _convert,
}
