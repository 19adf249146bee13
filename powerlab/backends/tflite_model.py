"""powerlab's optimised graph as a TFLite flatbuffer, the format LiteRT runs. Needs the ``ai-edge-litert`` package.

Images are (batch, height, width, channels) there. Source: TensorFlow Lite's schema, version 3, and the description of
its operators (https://www.tensorflow.org/mlir/tfl_ops).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from powerlab.backends.translation import rule_for
from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, slope_of

Array = NDArray[Any]

_VERSION = 3
_IDENTIFIER = b"TFL3"
_LOWEST = np.float32(-3.4028235e38)
_TO_CHANNELS_LAST, _TO_CHANNELS_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


class _Writer:
    """Collects tensors and operators of the one subgraph."""

    def __init__(self, graph: Graph, schema: Any) -> None:
        self.graph = graph
        self.schema = schema
        self.model = schema.ModelT()
        self.model.version = _VERSION
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.subgraph = schema.SubGraphT()
        self.subgraph.tensors, self.subgraph.operators = [], []
        self.model.subgraphs = [self.subgraph]
        self._codes: dict[str, int] = {}
        self._tensors: dict[str, int] = {}

    def tensor(self, name: str, shape: tuple[int, ...], value: Array | None = None) -> int:
        """Add a tensor in TFLite's own order of axes and return its index."""
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape = name, np.asarray(shape, np.int32)
        tensor.type = self.schema.TensorType.FLOAT32
        if value is not None:
            tensor.type = self.schema.TensorType.INT32 if value.dtype.kind == "i" else tensor.type
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        self.subgraph.tensors.append(tensor)
        return len(self.subgraph.tensors) - 1

    def of_graph(self, name: str) -> int:
        """Return the index of a tensor of the graph, images with their channels last."""
        if name not in self._tensors:
            value = self.graph.constants.get(name)
            if value is not None and value.ndim == 4:
                value = value.transpose(_TO_CHANNELS_LAST)
            self._tensors[name] = self.tensor(name, last(self.graph.shape(name)), value)
        return self._tensors[name]

    def constant(self, node: Node, label: str, value: Array) -> int:
        """Add a constant that belongs to a node."""
        kind = np.int32 if value.dtype.kind == "i" else np.float32
        return self.tensor(f"{node.outputs[0]}/{label}", value.shape, value.astype(kind))

    def between(self, node: Node, label: str, shape: Sequence[int]) -> int:
        """Add a tensor between two operators that one node becomes."""
        return self.tensor(f"{node.outputs[0]}/{label}", tuple(shape))

    def shape(self, index: int) -> tuple[int, ...]:
        """Return a tensor's shape in TFLite's order."""
        return tuple(int(size) for size in self.subgraph.tensors[index].shape)

    def emit(self, kind: str, inputs: Sequence[int], output: int, options: Any = None) -> None:
        """Add an operator; ``options`` are its options table, whose class names their type."""
        operator = self.schema.OperatorT()
        operator.opcodeIndex = self._code(kind)
        operator.inputs, operator.outputs = list(inputs), [output]
        if options is not None:
            operator.builtinOptionsType = getattr(self.schema.BuiltinOptions, type(options).__name__.removesuffix("T"))
            operator.builtinOptions = options
        self.subgraph.operators.append(operator)

    def _code(self, kind: str) -> int:
        if kind not in self._codes:
            code = self.schema.OperatorCodeT()
            code.builtinCode = getattr(self.schema.BuiltinOperator, kind)
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
            code.version = 1
            self._codes[kind] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(code)
        return self._codes[kind]

    def options(self, kind: str, **fields: object) -> Any:
        """Return an options table with its fields set."""
        options = getattr(self.schema, f"{kind}OptionsT")()
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    def activation(self, node: Node) -> int | None:
        """Return TFLite's word for the node's clamp; None where it has none and the clamp becomes operators."""
        kinds = self.schema.ActivationFunctionType
        words = {NO_CLAMP: kinds.NONE, (0.0, math.inf): kinds.RELU, (0.0, 6.0): kinds.RELU6}
        found: int | None = words.get(cast("tuple[float, float]", node.attributes["clamp"]))
        return found if slope_of(node) == NO_SLOPE else None

    def clamped(self, node: Node, emit: Callable[[int, int], None]) -> None:
        """Let ``emit`` add an operator with (activation, output), and a clamp without a word as operators after it."""
        output, fused = self.of_graph(node.outputs[0]), self.activation(node)
        if fused is not None:
            emit(fused, output)
            return
        between = self.between(node, "unclamped", self.shape(output))
        emit(self.schema.ActivationFunctionType.NONE, between)
        self.clamp(node, between)

    def clamp(self, node: Node, source: int) -> None:
        """Add the node's slope and clamp as operators that make its output."""
        low, high = cast("tuple[float, float]", node.attributes["clamp"])
        steps: list[tuple[str, tuple[int, ...], Any]] = []
        if slope_of(node) != NO_SLOPE:
            steps.append(("LEAKY_RELU", (), self.options("LeakyRelu", alpha=slope_of(node))))
        if math.isfinite(low) or not (steps or math.isfinite(high)):
            steps.append(("MAXIMUM", (self.constant(node, "low", np.array(max(low, _LOWEST))),), None))
        if math.isfinite(high):
            steps.append(("MINIMUM", (self.constant(node, "high", np.array(high)),), None))
        output = self.of_graph(node.outputs[0])
        for place, (kind, more, options) in enumerate(steps, start=1):
            is_last = place == len(steps)
            made = output if is_last else self.between(node, f"step{place}", self.shape(output))
            self.emit(kind, (source, *more), made, options)
            source = made

    def padded(self, node: Node, source: int, pads: tuple[int, ...], fill: np.float32) -> int:
        """Return the source with (top, left, bottom, right) around it."""
        top, left, bottom, right = pads
        batch, height, width, channels = self.shape(source)
        made = self.between(node, "padded", (batch, height + top + bottom, width + left + right, channels))
        widths = self.constant(node, "pads", np.array([[0, 0], [top, bottom], [left, right], [0, 0]]))
        if fill == 0:
            self.emit("PAD", (source, widths), made, self.options("Pad"))
        else:
            self.emit("PADV2", (source, widths, self.constant(node, "fill", np.array(fill))), made)
        return made

    def transposed(self, node: Node, label: str, source: int, order: tuple[int, ...]) -> int:
        """Return the source with its axes in another order."""
        shape = self.shape(source)
        made = self.between(node, label, [shape[axis] for axis in order])
        self.emit(
            "TRANSPOSE",
            (source, self.constant(node, f"{label} order", np.array(order))),
            made,
            self.options("Transpose"),
        )
        return made


def tflite_model(graph: Graph, schema: Any, flatbuffers: Any) -> bytes:
    """Return the flatbuffer; inputs and outputs keep the graph's order, images have their channels last.

    Args:
        graph: an optimised graph.
        schema: the module ``ai_edge_litert.schema_py_generated``.
        flatbuffers: the module of that name.

    Raises:
        PowerlabError: a node has no such form in TFLite.
    """
    writer = _Writer(graph, schema)
    writer.subgraph.inputs = [writer.of_graph(info.name) for info in graph.inputs]
    for node in graph.nodes:
        rule_for("litert", _OPERATORS, node)(writer, node)
    writer.subgraph.outputs = [writer.of_graph(info.name) for info in graph.outputs]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(writer.model.Pack(builder), _IDENTIFIER)
    return bytes(builder.Output())


def last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with the channels of images last."""
    return tuple(shape[axis] for axis in _TO_CHANNELS_LAST) if len(shape) == 4 else shape


def _same_pads(node: Node, image: tuple[int, ...], kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Return the pads that TFLite's SAME gives: as many windows as strides, the odd pixel below and to the right."""
    before, after = [], []
    for size, step, taps, dilation in zip(image, integers(node, "strides"), kernel, dilations, strict=True):
        total = max((-(-size // step) - 1) * step + (taps - 1) * dilation + 1 - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)


def _windows(
    writer: _Writer, node: Node, kernel: tuple[int, ...], dilations: tuple[int, ...], fill: np.float32
) -> tuple[int, int]:
    """Return the source, padded where TFLite cannot pad so, and TFLite's word for the padding that is left to do."""
    source, pads = writer.of_graph(node.inputs[0]), integers(node, "pads")
    words = writer.schema.Padding
    if not any(pads):
        return source, words.VALID
    if pads == _same_pads(node, writer.shape(source)[1:3], kernel, dilations):
        return source, words.SAME
    return writer.padded(node, source, pads, fill), words.VALID


def _conv(writer: _Writer, node: Node) -> None:
    weights, bias, residual = (node.input(index) for index in (1, 2, 3))
    values = writer.graph.constants[weights]
    outputs, inner, *kernel = values.shape
    (stride_h, stride_w), dilations = integers(node, "strides"), integers(node, "dilations")
    x, padding = _windows(writer, node, tuple(kernel), dilations, np.float32(0))
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


def _sum(writer: _Writer, node: Node, inputs: tuple[int, ...]) -> None:
    writer.clamped(
        node,
        lambda activation, output: writer.emit(
            "ADD", inputs, output, writer.options("Add", fusedActivationFunction=activation)
        ),
    )


def _gemm(writer: _Writer, node: Node) -> None:
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


def _add(writer: _Writer, node: Node) -> None:
    _sum(writer, node, tuple(writer.of_graph(name) for name in node.inputs))


def _clamp(writer: _Writer, node: Node) -> None:
    kinds = writer.schema.ActivationFunctionType
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    word = {kinds.RELU: "RELU", kinds.RELU6: "RELU6"}.get(writer.activation(node))
    if word is not None:
        writer.emit(word, (source,), output)
    else:
        writer.clamp(node, source)


def _multiply(writer: _Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    writer.clamped(
        node,
        lambda activation, output: writer.emit(
            "MUL", inputs, output, writer.options("Mul", fusedActivationFunction=activation)
        ),
    )


def _function(writer: _Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    options = writer.options("Gelu", approximate=False) if node.op_type == "Gelu" else None
    writer.emit(_FUNCTIONS[node.op_type], (source,), output, options)


def _elu(writer: _Writer, node: Node) -> None:
    if number(node, "alpha") != 1:
        raise PowerlabError(f"{node} has the alpha {number(node, 'alpha'):g}; LiteRT has this function for 1 alone.")
    writer.emit("ELU", (writer.of_graph(node.inputs[0]),), writer.of_graph(node.outputs[0]))


def _silu(writer: _Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    gate = writer.between(node, "gate", writer.shape(output))
    writer.emit("LOGISTIC", (source,), gate)
    writer.emit("MUL", (source, gate), output, writer.options("Mul"))


def _hard_sigmoid(writer: _Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    numbers = {"slope": number(node, "alpha"), "shift": number(node, "beta"), "low": 0.0, "high": 1.0}
    for label, kind, table in (("slope", "MUL", "Mul"), ("shift", "ADD", "Add"), ("low", "MAXIMUM", None)):
        made = writer.between(node, f"after {label}", writer.shape(output))
        constant = writer.constant(node, label, np.array(numbers[label]))
        writer.emit(kind, (source, constant), made, None if table is None else writer.options(table))
        source = made
    writer.emit("MINIMUM", (source, writer.constant(node, "high", np.array(numbers["high"]))), output)


def _scale_shift(writer: _Writer, node: Node) -> None:
    x, scale, shift = node.inputs
    source = writer.of_graph(x)
    rank = len(writer.shape(source))
    axes = (1,) * (rank - 1) + (-1,) if rank in (2, 4) else (1, -1, *(1,) * (rank - 2))
    factors, summands = (writer.graph.constants[name].reshape(axes) for name in (scale, shift))
    scaled = writer.between(node, "scaled", writer.shape(source))
    writer.emit("MUL", (source, writer.constant(node, "scale", factors)), scaled, writer.options("Mul"))
    _sum(writer, node, (scaled, writer.constant(node, "shift", summands)))


def _pool_options(writer: _Writer, node: Node, padding: int) -> Any:
    (height, width), (stride_h, stride_w) = integers(node, "kernel"), integers(node, "strides")
    sizes = {"filterHeight": height, "filterWidth": width, "strideH": stride_h, "strideW": stride_w}
    return writer.options("Pool2D", padding=padding, **sizes)


def _max_pool(writer: _Writer, node: Node) -> None:
    """Zeros around an image that is never negative change no maximum, and TFLite pads with zeros best."""
    made_by = writer.graph.producers().get(node.inputs[0])
    low, _ = cast("tuple[float, float]", made_by.attributes.get("clamp", NO_CLAMP)) if made_by else NO_CLAMP
    fill = np.float32(0) if low >= 0 else _LOWEST
    x, padding = _windows(writer, node, integers(node, "kernel"), (1, 1), fill)
    writer.emit("MAX_POOL_2D", (x,), writer.of_graph(node.outputs[0]), _pool_options(writer, node, padding))


def _average_pool(writer: _Writer, node: Node) -> None:
    """TFLite's SAME does not count the padding; other padding is put around first and then counts."""
    kernel, counts = integers(node, "kernel"), bool(node.attributes["count_include_pad"])
    output, pads = writer.of_graph(node.outputs[0]), integers(node, "pads")
    x, padding = _windows(writer, node, kernel, (1, 1), np.float32(0))
    if counts and padding == writer.schema.Padding.SAME:
        x, padding = writer.padded(node, x, pads, np.float32(0)), writer.schema.Padding.VALID
    kind, options = "AVERAGE_POOL_2D", _pool_options(writer, node, padding)
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


def _global_average_pool(writer: _Writer, node: Node) -> None:
    inputs = (writer.of_graph(node.inputs[0]), writer.constant(node, "axes", np.array([1, 2])))
    writer.emit("MEAN", inputs, writer.of_graph(node.outputs[0]), writer.options("Reducer", keepDims=True))


def _lrn(writer: _Writer, node: Node) -> None:
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


def _resize(writer: _Writer, node: Node) -> None:
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    size = writer.constant(node, "size", np.array(writer.shape(output)[1:3]))
    writer.emit("RESIZE_NEAREST_NEIGHBOR", (source, size), output, writer.options("ResizeNearestNeighbor"))


def _softmax(writer: _Writer, node: Node) -> None:
    shape = writer.graph.shape(node.outputs[0])
    if _axis(node, shape) != len(shape) - 1:
        raise PowerlabError(f"{node} works along axis {node.attributes['axis']} of {shape}; LiteRT takes the last one.")
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    writer.emit("SOFTMAX", (source,), output, writer.options("Softmax", beta=1.0))


def _concat(writer: _Writer, node: Node) -> None:
    inputs = tuple(writer.of_graph(name) for name in node.inputs)
    options = writer.options("Concatenation", axis=_axis(node, writer.graph.shape(node.outputs[0])))
    writer.emit("CONCATENATION", inputs, writer.of_graph(node.outputs[0]), options)


def _axis(node: Node, shape: tuple[int, ...]) -> int:
    """Return the node's axis in TFLite's order."""
    axis = int(number(node, "axis")) % len(shape)
    return _TO_CHANNELS_LAST.index(axis) if len(shape) == 4 else axis


def _reshape(writer: _Writer, node: Node) -> None:
    """Elements keep ONNX's order, so images of more than a pixel have their channels put first meanwhile."""
    source, output = writer.of_graph(node.inputs[0]), writer.of_graph(node.outputs[0])
    before, after = writer.graph.shape(node.inputs[0]), writer.graph.shape(node.outputs[0])
    if _moves(before):
        source = writer.transposed(node, "channels first", source, _TO_CHANNELS_FIRST)
    made = writer.between(node, "reshaped", after) if _moves(after) else output
    shape = after if _moves(after) else last(after)
    options = writer.options("Reshape", newShape=list(shape))
    writer.emit("RESHAPE", (source, writer.constant(node, "shape", np.array(shape))), made, options)
    if _moves(after):
        order = writer.constant(node, "order", np.array(_TO_CHANNELS_LAST))
        writer.emit("TRANSPOSE", (made, order), output, writer.options("Transpose"))


def _transpose(writer: _Writer, node: Node) -> None:
    order = integers(node, "perm")
    if len(order) == 4:
        order = tuple(_TO_CHANNELS_LAST.index(order[axis]) for axis in _TO_CHANNELS_LAST)
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

_OPERATORS: dict[str, Callable[[_Writer, Node], None]] = {
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
    "Resize": _resize,
    "ScaleShift": _scale_shift,
    "Silu": _silu,
    "Softmax": _softmax,
    "Transpose": _transpose,
    **dict.fromkeys(_FUNCTIONS, _function),
}
