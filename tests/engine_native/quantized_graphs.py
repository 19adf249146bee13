"""Small quantized graphs as a reader leaves them, and what they mean in integers."""

import numpy as np

from engine_native.numpy_reference import conv, pool
from powerlab.engine.ir.graph import Graph, Node, TensorInfo

UINT8 = np.dtype(np.uint8)


class Quantized:
    """A graph that grows layer by layer, each between DequantizeLinear and QuantizeLinear; and its bytes.

    All results are worked out at once, in integers, as native/engine/kernels/bytes/requantize.hpp says.
    """

    def __init__(self, seed: int = 0, dtype: type = np.uint8) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.tensors: dict[str, TensorInfo] = {}
        self.bytes: dict[str, tuple[np.ndarray, np.float32, int]] = {}
        self.inputs: list[TensorInfo] = []
        self.values: dict[str, np.ndarray] = {}

    def constant(self, values) -> str:
        values = np.asarray(values)
        name = f"c{len(self.constants)}"
        self.constants[name] = values
        self.tensors[name] = TensorInfo(name, values.shape, values.dtype)
        return name

    def node(self, op_type, inputs, shape, dtype=np.float32, **attributes) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(Node(op_type, f"n{len(self.nodes)}", tuple(inputs), (name,), attributes))
        self.tensors[name] = TensorInfo(name, tuple(shape), np.dtype(dtype))
        return name

    def input(self, *shape: int) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(TensorInfo(name, shape))
        self.tensors[name] = self.inputs[-1]
        self.values[name] = self.random.standard_normal(shape).astype(np.float32)
        return self.quantize(name, 0.021, 117, np.rint(self.values[name] / np.float32(0.021)) + 117)

    def quantize(self, floats, step, zero, values) -> str:
        """Quantize ``floats``; ``values`` are the bytes that are expected, not yet within their bounds."""
        offset = 128 if self.dtype == np.int8 else 0
        scale = (self.constant(np.float32(step)), self.constant(self.dtype.type(zero - offset)))
        name = self.node("QuantizeLinear", (floats, *scale), self.tensors[floats].shape, self.dtype)
        self.bytes[name] = (np.clip(values, 0, 255).astype(np.int64), np.float32(step), zero)
        return name

    def dequantize(self, name) -> str:
        _, step, zero = self.bytes[name]
        offset = 128 if self.dtype == np.int8 else 0
        scale = (self.constant(step), self.constant(self.dtype.type(zero - offset)))
        return self.node("DequantizeLinear", (name, *scale), self.tensors[name].shape)

    def conv(self, x, outputs, kernel, *, residual=None, relu=False, quantized=True, **window):
        strides, pads = window.get("strides", (1, 1)), window.get("pads", (0, 0, 0, 0))
        dilations, group = window.get("dilations", (1, 1)), window.get("group", 1)
        values, step, zero = self.bytes[x]
        inputs = values.shape[1] // group
        weights = self.random.integers(-127, 128, (outputs, inputs, *kernel)).astype(np.int8)
        steps = self.random.uniform(0.5, 1.5, outputs).astype(np.float32) / np.float32(90 * inputs * np.prod(kernel))
        bias = self.random.integers(-3000, 3000, outputs).astype(np.int32)
        of_sums = np.float64(step) * steps.astype(np.float64)
        scales = (self.constant(steps), self.constant(np.zeros(outputs, np.int8)))
        floats = self.node("DequantizeLinear", (self.constant(weights), *scales), weights.shape, axis=0)
        shift = self.constant((bias * of_sums).astype(np.float32))
        moved = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
        sums = conv(values - zero, weights, **moved, clamp=(-np.inf, np.inf))
        sums += np.rint(self.constants[shift].astype(np.float64) / of_sums)[None, :, None, None]
        shape = sums.shape
        made = self.node(
            "Conv",
            (self.dequantize(x), floats, shift),
            shape,
            **moved,
        )
        if not quantized:
            self.values[made] = sums.astype(np.float32) * of_sums.astype(np.float32)[None, :, None, None]
            return made
        out_step, out_zero = np.float32(0.013), 0 if relu else 131
        multipliers = (of_sums / np.float64(out_step)).astype(np.float32)[None, :, None, None]
        found = sums.astype(np.float32) * multipliers
        if residual is not None:
            found = found + self._scaled(residual, out_step)
            made = self.node("Add", (made, self.dequantize(residual)), shape)
        return self._end(made, found, out_step, out_zero, relu)

    def _scaled(self, name, out_step):
        values, step, zero = self.bytes[name]
        return (values - zero).astype(np.float32) * np.float32(np.float64(step) / np.float64(out_step))

    def _end(self, made, found, out_step, out_zero, relu=False):
        if relu:
            made, found = self.node("Relu", (made,), self.tensors[made].shape), np.maximum(found, 0)
        return self.quantize(made, out_step, out_zero, np.rint(found) + out_zero)

    def add(self, x, y, *, relu=False):
        out_step = np.float32(0.017)
        found = self._scaled(x, out_step) + self._scaled(y, out_step)
        made = self.node("Add", (self.dequantize(x), self.dequantize(y)), self.tensors[x].shape)
        return self._end(made, found, out_step, 0 if relu else 101, relu)

    def max_pool(self, x, kernel, strides, pads):
        values, step, zero = self.bytes[x]
        found = pool(values, np.max, 0, kernel=kernel, strides=strides, pads=pads)
        made = self.node("MaxPool", (self.dequantize(x),), found.shape, kernel_shape=kernel, strides=strides, pads=pads)
        return self.quantize(made, step, zero, found)

    def global_average(self, x):
        values, step, zero = self.bytes[x]
        out_step = np.float32(0.009)
        sums = (values - zero).sum(axis=(2, 3), keepdims=True)
        ratio = np.float32(np.float64(step) / np.float64(out_step)) / np.float32(values.shape[2] * values.shape[3])
        made = self.node("GlobalAveragePool", (self.dequantize(x),), sums.shape)
        return self._end(made, sums.astype(np.float32) * ratio, out_step, 90)

    def flatten(self, x):
        values, step, zero = self.bytes[x]
        found = values.reshape(len(values), -1)
        made = self.node("Flatten", (self.dequantize(x),), found.shape, axis=1)
        return self.quantize(made, step, zero, found)

    def gemm(self, x, outputs):
        values, step, zero = self.bytes[x]
        weights = self.random.integers(-127, 128, (outputs, values.shape[1])).astype(np.int8)
        steps = self.random.uniform(0.5, 1.5, outputs).astype(np.float32) / np.float32(900)
        scales = (self.constant(steps), self.constant(np.zeros(outputs, np.int8)))
        floats = self.node("DequantizeLinear", (self.constant(weights), *scales), weights.shape, axis=0)
        found = ((values - zero) @ weights.T.astype(np.int64)).astype(np.float32)
        made = self.node("Gemm", (self.dequantize(x), floats), found.shape, transB=1)
        self.values[made] = found * (np.float64(step) * steps.astype(np.float64)).astype(np.float32)
        return made

    def floats(self, x) -> str:
        """Return an output that shows the bytes of ``x``."""
        values, step, zero = self.bytes[x]
        made = self.dequantize(x)
        self.values[made] = (values - zero).astype(np.float32) * step
        return made

    def graph(self, *outputs: str) -> Graph:
        outs = tuple(self.tensors[name] for name in outputs)
        return Graph("quantized", tuple(self.nodes), tuple(self.inputs), outs, self.constants, self.tensors)

    def fed(self) -> dict[str, np.ndarray]:
        return {info.name: self.values[info.name] for info in self.inputs}
