"""What the bytes of a tensor stand for, and where a graph says so.

All bytes are unsigned inside: a signed one is 128 more, and so is its zero point.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.constants import Value, value_of
from powerlab.engine.ir.graph import Array, Graph, Node

_LEVELS = {np.dtype(np.uint8): 0, np.dtype(np.int8): 128}
"""Types of bytes → what is added to them."""


class Scale(Struct, frozen=True):
    """A byte q stands for ``step * (q - zero)``; ``offset`` is what was added to the bytes of the model."""

    step: float
    zero: int
    offset: int = 0

    def byte(self, value: float) -> int:
        """Return the byte nearest to a number, 0 or 255 where it is beyond them."""
        if np.isinf(value):
            return 255 if value > 0 else 0
        return int(np.clip(np.rint(np.float32(value) / np.float32(self.step)) + self.zero, 0, 255))


def tensor_scale(graph: Graph, node: Node) -> Scale | None:
    """Return the scale of a QuantizeLinear or DequantizeLinear; None where it is not one known number."""
    step = graph.kept_constants.get(node.inputs[1])
    if step is None or int(np.prod(step.shape)) != 1 or node.attributes.get("block_size"):
        return None
    name = node.input(2)
    if not name:
        bytes_name = node.outputs[0] if node.op_type == "QuantizeLinear" else node.inputs[0]
        dtype, zero = graph.tensors[bytes_name].dtype, 0
    else:
        value = graph.kept_constants.get(name)
        if value is None or int(np.prod(value.shape)) != 1:
            return None
        dtype, zero = np.dtype(value.dtype), int(value_of(value).reshape(()))
    if dtype not in _LEVELS:
        return None
    number, offset = float(np.float32(value_of(step).reshape(()))), _LEVELS[dtype]
    return Scale(number, zero + offset, offset) if np.isfinite(number) and number > 0 else None


def byte_steps(node: Node) -> tuple[float, int]:
    """Return the size of a step and the zero point of a Quantize or Dequantize."""
    return cast("float", node.attributes["step"]), cast("int", node.attributes["zero"])


def whole_range(zero: int) -> dict[str, object]:
    """Return a zero point and the bounds of all bytes as attributes of an operator that makes such bytes."""
    return {"zero": zero, "low": -float(zero), "high": 255.0 - zero}


class QuantizedWeights(Struct, frozen=True, eq=False):
    """Constant signed bytes with zero point 0, and a step for each index of their axis ``axis``, or one for all."""

    values: Value
    steps: Array
    axis: int

    def per_output(self, outputs: int, axis: int) -> Array | None:
        """Return a step for each of the outputs, which lie along ``axis``; None where steps go along another."""
        if self.steps.size == 1:
            return np.full(outputs, self.steps.reshape(())[()], np.float32)
        return self.steps.reshape(-1) if self.axis == axis and self.steps.size == outputs else None


def quantized_weights(graph: Graph, node: Node | None) -> QuantizedWeights | None:
    """Return what a DequantizeLinear reads, if that are such weights."""
    if node is None or node.op_type != "DequantizeLinear" or node.attributes.get("block_size"):
        return None
    values, steps = (graph.kept_constants.get(name) for name in node.inputs[:2])
    if values is None or steps is None or values.dtype != np.int8 or len(steps.shape) > 1:
        return None
    zeros = graph.kept_constants.get(node.input(2)) if node.input(2) else None
    if node.input(2) and (zeros is None or np.any(value_of(zeros))):
        return None
    numbers = np.asarray(value_of(steps), np.float32)
    if not np.all(np.isfinite(numbers) & (numbers > 0)):
        return None
    axis = int(str(node.attributes.get("axis", 1)))
    return QuantizedWeights(values, numbers, axis % max(1, len(values.shape)))
