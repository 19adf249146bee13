"""What a TFLite model is put together from: its tensors and operators, and the words of its schema.

Images are (batch, height, width, channels) there. Source: TensorFlow Lite's schema, version 3, and the description of
its operators (https://www.tensorflow.org/mlir/tfl_ops).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.codegen.attributes import integers
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP, NO_SLOPE, slope_of
from powerlab.engine.passes.quantized.scales import Scale

Array = NDArray[Any]

LOWEST = np.float32(-3.4028235e38)
TO_CHANNELS_LAST, TO_CHANNELS_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)

SIGN = 128
"""Bytes are unsigned in powerlab's graphs and signed in TFLite."""

_VERSION = 3


@dataclass(frozen=True, slots=True)
class Quantization:
    """What integers stand for: ``step * (q - zero)``, with one step, or one for each index of an axis."""

    steps: tuple[float, ...]
    zero: int
    axis: int = 0

    @classmethod
    def of(cls, scale: Scale) -> Quantization:
        """Return that of the signed bytes that are unsigned ones in powerlab's graph."""
        return cls((scale.step,), scale.zero - SIGN)


class Writer:
    """Collects tensors and operators of the one subgraph.

    Attributes:
        graph: whose nodes are written.
        scales: what the bytes of its tensors stand for; TFLite's are signed, so they are 128 less there.
        schema: the module ``ai_edge_litert.schema_py_generated``.
        model: the model that is made.
        subgraph: its only one.
    """

    def __init__(self, graph: Graph, schema: Any, scales: Mapping[str, Scale]) -> None:
        self.graph = graph
        self.scales = scales
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

    def tensor(
        self, name: str, shape: tuple[int, ...], value: Array | None = None, quantization: Quantization | None = None
    ) -> int:
        """Add a tensor in TFLite's own order of axes and return its index.

        Args:
            name: of the tensor.
            shape: of it.
            value: float32, int32 or int8, where it is a constant.
            quantization: what its integers stand for; without a value it is of signed bytes then.
        """
        tensor = self.schema.TensorT()
        tensor.name, tensor.shape = name, np.asarray(shape, np.int32)
        dtype = value.dtype if value is not None else np.dtype(np.float32 if quantization is None else np.int8)
        tensor.type = getattr(self.schema.TensorType, dtype.name.upper())
        if quantization is not None:
            tensor.quantization = self.schema.QuantizationParametersT()
            tensor.quantization.scale = np.asarray(quantization.steps, np.float32)
            tensor.quantization.zeroPoint = np.full(len(quantization.steps), quantization.zero, np.int64)
            tensor.quantization.quantizedDimension = quantization.axis
        if value is not None:
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
                value = value.transpose(TO_CHANNELS_LAST)
            scale = self.scales.get(name)
            quantization = None if scale is None else Quantization.of(scale)
            self._tensors[name] = self.tensor(name, last(self.graph.shape(name)), value, quantization)
        return self._tensors[name]

    def constant(self, node: Node, label: str, value: Array, quantization: Quantization | None = None) -> int:
        """Add a constant that belongs to a node: int8 as it is, other integers as int32, the rest as float32."""
        kind = value.dtype if value.dtype == np.int8 else np.int32 if value.dtype.kind == "i" else np.float32
        return self.tensor(f"{node.outputs[0]}/{label}", value.shape, value.astype(kind), quantization)

    def between(self, node: Node, label: str, shape: Sequence[int], quantization: Quantization | None = None) -> int:
        """Add a tensor between two operators that one node becomes."""
        return self.tensor(f"{node.outputs[0]}/{label}", tuple(shape), quantization=quantization)

    def quantization(self, index: int) -> Quantization | None:
        """Return what the bytes of a tensor stand for; None where it is of floats."""
        found = self.subgraph.tensors[index].quantization
        return None if found is None else Quantization(tuple(found.scale), int(found.zeroPoint[0]))

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
            steps.append(("MAXIMUM", (self.constant(node, "low", np.array(max(low, LOWEST))),), None))
        if math.isfinite(high):
            steps.append(("MINIMUM", (self.constant(node, "high", np.array(high)),), None))
        output = self.of_graph(node.outputs[0])
        for place, (kind, more, options) in enumerate(steps, start=1):
            is_last = place == len(steps)
            made = output if is_last else self.between(node, f"step{place}", self.shape(output))
            self.emit(kind, (source, *more), made, options)
            source = made

    def padded(self, node: Node, source: int, pads: tuple[int, ...], fill: int | None) -> int:
        """Return the source with (top, left, bottom, right) around it: the constant ``fill``, or zeros."""
        top, left, bottom, right = pads
        batch, height, width, channels = self.shape(source)
        shape = (batch, height + top + bottom, width + left + right, channels)
        made = self.between(node, "padded", shape, self.quantization(source))
        widths = self.constant(node, "pads", np.array([[0, 0], [top, bottom], [left, right], [0, 0]]))
        if fill is None:
            self.emit("PAD", (source, widths), made, self.options("Pad"))
        else:
            self.emit("PADV2", (source, widths, fill), made)
        return made

    def windows(
        self, node: Node, kernel: Sequence[int], dilations: Sequence[int] = (1, 1), fill: Array | None = None
    ) -> tuple[int, int]:
        """Return a node's first input, padded where TFLite cannot pad so, and its word for the padding left to do.

        Args:
            node: has ``pads`` and ``strides``.
            kernel: height and width of its windows.
            dilations: between their rows and columns.
            fill: the one number that is put around, where that is not zero.
        """
        source, pads = self.of_graph(node.inputs[0]), integers(node, "pads")
        if not any(pads):
            return source, self.schema.Padding.VALID
        if pads == _same_pads(node, self.shape(source)[1:3], kernel, dilations):
            return source, self.schema.Padding.SAME
        around = None if fill is None else self.constant(node, "fill", fill, self.quantization(source))
        return self.padded(node, source, pads, around), self.schema.Padding.VALID

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


def last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with the channels of images last."""
    return tuple(shape[axis] for axis in TO_CHANNELS_LAST) if len(shape) == 4 else shape


def _same_pads(node: Node, image: tuple[int, ...], kernel: Sequence[int], dilations: Sequence[int]) -> tuple[int, ...]:
    """Return the pads that TFLite's SAME gives: as many windows as strides, the odd pixel below and to the right."""
    before, after = [], []
    for size, step, taps, dilation in zip(image, integers(node, "strides"), kernel, dilations, strict=True):
        total = max((-(-size // step) - 1) * step + (taps - 1) * dilation + 1 - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return (*before, *after)
