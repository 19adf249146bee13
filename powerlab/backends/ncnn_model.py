"""powerlab's optimised graph as ncnn's two files: the text of layers, and their weights.

Source: https://github.com/Tencent/ncnn/wiki/param-and-model-file-structure and the pages of its layers. ncnn's tensors
have no batch axis: what is ``(1, c, h, w)`` here is ``(c, h, w)`` there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from powerlab.backends.attention import join_attentions
from powerlab.backends.ncnn_bytes import in_bytes
from powerlab.backends.ncnn_transformers import TRANSFORMERS
from powerlab.backends.ncnn_writer import Writer, axis_of, blob, sizes
from powerlab.backends.translation import rule_for
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, slope_of

_MAGIC = 7767517
_FLOATS_FOLLOW = b"\0\0\0\0"
"""Before the weights of a convolution or a fully connected layer: they are plain float32."""
_ONE_AN_OUTPUT = 4
"""How the bias of a Gemm lies."""
_NO_BOUND = 3.4028235e38
_RELU, _LEAKY, _CLIP = 1, 2, 3
_NEAREST = 1
_SUM, _PRODUCT = 0, 2
_FUNCTIONS = {
    "Elu": ("ELU", "alpha"),
    "Erf": ("Erf",),
    "Exp": ("Exp",),
    "Gelu": ("GELU",),
    "HardSigmoid": ("HardSigmoid", "alpha", "beta"),
    "HardSwish": ("HardSwish",),
    "Sigmoid": ("Sigmoid",),
    "Silu": ("Swish",),
    "Tanh": ("TanH",),
}
"""Functions of one number: ncnn's layer, and the attributes that are its parameters."""


def ncnn_model(graph: Graph, largest: Mapping[str, float] | None = None) -> tuple[str, bytes, dict[str, str]]:
    """Return the text, the weights, and ncnn's name of every input and output.

    Args:
        graph: the network, of one image.
        largest: tensors that are to be bytes -> the largest number they may be (:mod:`.ncnn_bytes`); None: none are.

    Raises:
        PowerlabError: a tensor is no single image, or a node has no such form in ncnn.
    """
    graph = join_attentions(graph)
    rows = _rows(graph)
    for info in (*graph.inputs, *(graph.tensors[output] for node in graph.nodes for output in node.outputs if output)):
        if len(info.shape) not in (2, 3, 4) or (info.shape[0] != 1 and info.name not in rows):
            raise PowerlabError(
                f"ncnn takes one image at a time of at most three axes, but {info.name!r} has shape {info.shape}; "
                "use another engine for this model."
            )
    writer = Writer(graph, largest or {})
    for info in graph.inputs:
        writer.layer("Input", (), info.name, {})
    for node in graph.nodes:
        rule_for("ncnn", _LAYERS, node)(writer, node)
    text = "\n".join((str(_MAGIC), f"{len(writer.layers)} {writer.blob_count}", *writer.layers)) + "\n"
    ends = (*graph.inputs, *graph.outputs)
    return text, b"".join(writer.weights), {info.name: blob(info.name) for info in ends}


def _rows(graph: Graph) -> set[str]:
    """Return the tensors that are rows of one image, (rows, features), which fully connected layers take."""
    rows: set[str] = set()
    for node in graph.nodes:
        viewed = node.op_type == "Reshape" and graph.shape(node.inputs[0])[0] == 1
        treated = node.op_type in _ROW_BY_ROW and node.inputs[0] in rows
        if (viewed or treated) and len(graph.shape(node.outputs[0])) == 2:
            rows.update(node.outputs)
    return rows - graph.output_names()


def _ends(node: Node) -> list[tuple[str, dict[int, object]]]:
    """Return the layers that the node's slope and clamp are."""
    low, high = cast("tuple[float, float]", node.attributes["clamp"])
    ends: list[tuple[str, dict[int, object]]] = []
    if slope_of(node) != NO_SLOPE:
        ends.append(("ReLU", {0: f"{slope_of(node):.9g}"}))
    if (low, high) == (0.0, math.inf):
        ends.append(("ReLU", {}))
    elif (low, high) != NO_CLAMP:
        ends.append(("Clip", {0: f"{max(low, -_NO_BOUND):.9g}", 1: f"{min(high, _NO_BOUND):.9g}"}))
    return ends


def _activation(node: Node) -> dict[int, object] | None:
    """Return the node's end as parameters of a layer that computes it too; None where it is more than one."""
    match _ends(node):
        case []:
            return {}
        case [("ReLU", {0: slope})]:
            return {9: _LEAKY, -23310: f"1,{slope}"}
        case [("ReLU", _)]:
            return {9: _RELU}
        case [("Clip", {0: low, 1: high})]:
            return {9: _CLIP, -23310: f"2,{low},{high}"}
    return None


def _followed(
    writer: Writer, node: Node, ends: list[tuple[str, dict[int, object]]], add: Callable[[str], None]
) -> None:
    """Add a layer, which is told its output, and after it the ends that it does not compute itself."""
    between = [writer.part(node, f"end{number}") for number in range(len(ends))]
    made = [*between, node.outputs[0]]
    add(made[0])
    for (kind, parameters), source, output in zip(ends, made, made[1:], strict=False):
        writer.layer(kind, (source,), output, parameters)


def _conv(writer: Writer, node: Node) -> None:
    x, weight, bias, residual = (node.input(index) for index in range(4))
    values = writer.constant(weight)
    top, left, bottom, right = integers(node, "pads")
    (stride_h, stride_w), (dilation_h, dilation_w) = integers(node, "strides"), integers(node, "dilations")
    group = int(number(node, "group"))
    parameters: dict[int, object] = {0: values.shape[0], 1: values.shape[3], 11: values.shape[2]}
    parameters |= {2: dilation_w, 12: dilation_h, 3: stride_w, 13: stride_h}
    parameters |= {4: left, 14: top, 15: right, 16: bottom, 5: int(bool(bias)), 6: values.size}
    if group > 1:
        parameters[7] = group
    kind_of_bytes, scales = in_bytes(writer, node, values, is_whole=not residual and _activation(node) is not None)
    parameters |= kind_of_bytes
    weights = [*_weights(writer, weight, bias), *scales]
    kind = "Convolution" if group == 1 else "ConvolutionDepthWise"
    if not residual:
        _computed(writer, node, kind, parameters, weights)
        return
    convolved = writer.part(node, "convolved")
    writer.layer(kind, (x,), convolved, parameters, weights)
    _followed(
        writer, node, _ends(node), lambda output: writer.layer("BinaryOp", (convolved, residual), output, {0: _SUM})
    )


def _weights(writer: Writer, weight: str, bias: str) -> list[bytes]:
    """Return the weights of a convolution or a fully connected layer, whose bias may be missing."""
    offsets = [writer.constant(bias).tobytes()] if bias else []
    return [_FLOATS_FOLLOW, writer.constant(weight).tobytes(), *offsets]


def _computed(writer: Writer, node: Node, kind: str, parameters: dict[int, object], weights: Sequence[bytes]) -> None:
    """Add a convolution or a fully connected layer with its end, inside it where it can be."""
    activation = _activation(node)
    ends = [] if activation is not None else _ends(node)
    whole = parameters | (activation or {})
    _followed(writer, node, ends, lambda output: writer.layer(kind, node.inputs[:1], output, whole, weights))


def _gemm(writer: Writer, node: Node) -> None:
    """Add a fully connected layer; of several rows ncnn's Gemm is 2 to 3 times as fast as its InnerProduct."""
    weight, bias = node.input(1), node.input(2)
    values = writer.constant(weight)
    outputs, inputs = values.shape
    if writer.graph.shape(node.inputs[0])[0] == 1:
        parameters: dict[int, object] = {0: outputs, 1: int(bool(bias)), 2: values.size}
        kind_of_bytes, scales = in_bytes(writer, node, values)
        weights = [*_weights(writer, weight, bias), *scales]
        _computed(writer, node, "InnerProduct", parameters | kind_of_bytes, weights)
        return
    offsets = writer.constant(bias) if bias else np.zeros(outputs, np.float32)
    parameters = {3: 1, 5: 1, 6: 1, 8: outputs, 9: inputs, 10: _ONE_AN_OUTPUT}
    weights = [_FLOATS_FOLLOW, values.tobytes(), _FLOATS_FOLLOW, offsets.tobytes()]
    _followed(writer, node, _ends(node), lambda made: writer.layer("Gemm", node.inputs[:1], made, parameters, weights))


def _add(writer: Writer, node: Node) -> None:
    _followed(writer, node, _ends(node), lambda output: writer.layer("BinaryOp", node.inputs[:2], output, {0: _SUM}))


def _multiply(writer: Writer, node: Node) -> None:
    _followed(writer, node, _ends(node), lambda output: writer.layer("BinaryOp", node.inputs, output, {0: _PRODUCT}))


def _function(writer: Writer, node: Node) -> None:
    """Add a function of one number; ncnn's hard swish is told the slope that ONNX's always has."""
    kind, *numbers = _FUNCTIONS[node.op_type]
    given = {place: f"{number(node, name):.9g}" for place, name in enumerate(numbers)}
    writer.layer(kind, node.inputs, node.outputs[0], {0: f"{1 / 6:.9g}", 1: 0.5} if kind == "HardSwish" else given)


def _clamp(writer: Writer, node: Node) -> None:
    (kind, parameters), *ends = _ends(node) or [("Noop", {})]
    _followed(writer, node, ends, lambda output: writer.layer(kind, node.inputs, output, parameters))


def _scale_shift(writer: Writer, node: Node) -> None:
    x, scale, shift = node.inputs
    weights = [writer.constant(name).tobytes() for name in (scale, shift)]
    parameters = {0: writer.constant(scale).size, 1: 1}
    _followed(writer, node, _ends(node), lambda output: writer.layer("Scale", (x,), output, parameters, weights))


def _pool(writer: Writer, node: Node) -> None:
    (height, width), (stride_h, stride_w) = integers(node, "kernel"), integers(node, "strides")
    top, left, bottom, right = integers(node, "pads")
    average = node.op_type == "AveragePool"
    parameters: dict[int, object] = {0: int(average), 1: width, 11: height, 2: stride_w, 12: stride_h}
    parameters |= {3: left, 13: top, 14: right, 15: bottom, 5: 1}
    if average:
        parameters[6] = int(bool(node.attributes["count_include_pad"]))
    writer.layer("Pooling", node.inputs[:1], node.outputs[0], parameters)


def _global_average_pool(writer: Writer, node: Node) -> None:
    """The layer gives the means as a row; the graph goes on with an image of one pixel."""
    row = writer.part(node, "row")
    writer.layer("Pooling", node.inputs[:1], row, {0: 1, 4: 1})
    writer.layer("Reshape", (row,), node.outputs[0], sizes(writer.graph.shape(node.outputs[0])))


def _lrn(writer: Writer, node: Node) -> None:
    size = int(number(node, "size"))
    if size % 2 == 0:
        raise PowerlabError(f"{node} normalises over {size} channels, and ncnn over odd numbers of them alone.")
    alpha, beta, bias = (f"{number(node, name):.9g}" for name in ("alpha", "beta", "bias"))
    writer.layer("LRN", node.inputs[:1], node.outputs[0], {0: 0, 1: size, 2: alpha, 3: beta, 4: bias})


def _resize(writer: Writer, node: Node) -> None:
    height, width = integers(node, "factors")
    writer.layer("Interp", node.inputs[:1], node.outputs[0], {0: _NEAREST, 1: height, 2: width})


def _softmax(writer: Writer, node: Node) -> None:
    writer.layer("Softmax", node.inputs[:1], node.outputs[0], {0: _axis(writer, node), 1: 1})


def _concat(writer: Writer, node: Node) -> None:
    writer.layer("Concat", node.inputs, node.outputs[0], {0: _axis(writer, node)})


def _reshape(writer: Writer, node: Node) -> None:
    writer.layer("Reshape", node.inputs[:1], node.outputs[0], sizes(writer.graph.shape(node.outputs[0])))


def _axis(writer: Writer, node: Node) -> int:
    return axis_of(node, int(number(node, "axis")), len(writer.graph.shape(node.outputs[0])))


_ROW_BY_ROW = frozenset({"Add", "Clamp", "FusedGemm", *_FUNCTIONS})
"""What may come between rows and their being an image again."""

_LAYERS: dict[str, Callable[[Writer, Node], None]] = {
    "Add": _add,
    "AveragePool": _pool,
    "Clamp": _clamp,
    "Concat": _concat,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "LRN": _lrn,
    "MaxPool": _pool,
    "Multiply": _multiply,
    "Reshape": _reshape,
    "Resize": _resize,
    "ScaleShift": _scale_shift,
    "Softmax": _softmax,
    **dict.fromkeys(_FUNCTIONS, _function),
    **TRANSFORMERS,
}
