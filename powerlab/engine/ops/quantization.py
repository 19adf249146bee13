"""QuantizeLinear and DequantizeLinear, and the integers in which they express floats.

A number x is expressed as ``saturate(round(x / scale) + zero_point)``, even where two are as near. Scale and zero point
are one for the whole tensor, one an index of an axis, or one a block of an axis.

Source: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html; B. Jacob et al., "Quantization and Training of Neural
Networks for Efficient Integer-Arithmetic-Only Inference", https://arxiv.org/abs/1712.05877.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ir.narrow_types import NARROW, NarrowFloat, NarrowInteger
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.casting import saturates, stated_dtype, whole_range
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

UINT8: np.dtype[Any] = np.dtype(np.uint8)


def quantize(x: Array, scale: Array, zero_point: Array, limits: tuple[int, int]) -> Array:
    """Return the integers, as int64, that express ``x``; scale and zero point broadcast to it."""
    steps = np.rint(x.astype(np.float32) / scale.astype(np.float32))
    low, high = (np.float32(limit) - zero_point.astype(np.float32) for limit in limits)
    whole: Array = np.nan_to_num(np.clip(steps, low, high), nan=0.0).astype(np.int64)
    return whole + zero_point.astype(np.int64)


def dequantize(x: Array, scale: Array, zero_point: Array) -> Array:
    """Return the float32 numbers that integers express; scale and zero point broadcast to them."""
    if x.dtype.kind == "f":
        return np.asarray((x - zero_point) * scale, np.float32)
    return (x.astype(np.int64) - zero_point.astype(np.int64)).astype(np.float32) * scale.astype(np.float32)


def limits_of(view: NodeView) -> tuple[int, int]:
    """Return the smallest and largest integer that a QuantizeLinear makes."""
    kind = NARROW.get(view.integer("output_dtype", 0))
    return kind.limits if isinstance(kind, NarrowInteger) else whole_range(quantized_dtype(view))


def float_kind(view: NodeView) -> NarrowFloat | None:
    """Return the narrow float type that a QuantizeLinear makes; None where it makes integers."""
    kind = NARROW.get(view.integer("output_dtype", 0))
    return kind if isinstance(kind, NarrowFloat) else None


def quantized_dtype(view: NodeView) -> np.dtype[Any]:
    """Return the type that a QuantizeLinear makes, as the engine holds it."""
    stated = stated_dtype(view, "output_dtype", 0) if view.integer("output_dtype", 0) else None
    given = view.dtype(2) if view.has(2) else None
    if stated is not None and given is not None and stated != given:
        view.fail(f"has zero points of the type {given} for values of the type {stated}; quantize the model again")
    return stated or given or UINT8


def expanded(view: NodeView, parameter: Array) -> Array:
    """Return a scale or zero point in a shape that broadcasts to the node's first input."""
    shape, own = view.shape(0), parameter.shape
    block = view.integer("block_size", 0)
    if block:
        axis = view.axis(view.integer("axis", 1), len(shape))
        repeated = np.repeat(parameter, block, axis=axis)
        return repeated.take(np.arange(shape[axis]), axis=axis)
    if parameter.size == 1 and len(own) < 2:
        return parameter.reshape(())
    return parameter.reshape(parameter_shape(view))


def parameter_shape(view: NodeView) -> tuple[int, ...]:
    """Return the shape in which one scale an index of the node's axis broadcasts to its first input."""
    rank = len(view.shape(0))
    axis = view.axis(view.integer("axis", 1), rank)
    return tuple(view.shape(1)[0] if at == axis else 1 for at in range(rank))


def _check(view: NodeView) -> None:
    """Raise PowerlabError unless scale and zero point fit the first input, and the scale is a positive number."""
    shape, scale = view.shape(0), view.floats(1)
    if view.has(2) and view.shape(2) != scale and not _are_one(view.shape(2), scale):
        view.fail(
            f"has scales of the shape {scale} and zero points of the shape {view.shape(2)}; there is one zero point a "
            "scale, so quantize the model again"
        )
    block = view.integer("block_size", 0)
    if block < 0:
        view.fail(f"has block_size {block}; it must be 0 or more")
    if block:
        axis = view.axis(view.integer("axis", 1), len(shape))
        wanted = tuple(-(-size // block) if at == axis else size for at, size in enumerate(shape))
        if scale != wanted:
            view.fail(f"has scales of the shape {scale}, but blocks of {block} want the shape {wanted}")
    elif len(scale) > 1:
        view.fail(f"has scales of the shape {scale}, but no block_size says what each is for")
    elif scale not in ((), (1,)):
        axis = view.axis(view.integer("axis", 1), len(shape))
        if scale[0] != shape[axis]:
            view.fail(f"has {scale[0]} scales for the {shape[axis]} indices of axis {axis}")
    if view.is_known(1):
        check_scales(view, 1)


def _are_one(*shapes: tuple[int, ...]) -> bool:
    return all(shape in ((), (1,)) for shape in shapes)


def check_scales(view: NodeView, index: int) -> None:
    """Raise PowerlabError where a known scale is 0, negative, or no number: then it expresses nothing."""
    scale = view.value(index)
    if not np.all(np.isfinite(scale) & (scale > 0)):
        wrong = float(scale.reshape(-1)[np.argmin(np.isfinite(scale.reshape(-1)) & (scale.reshape(-1) > 0))])
        view.fail(f"has a scale of {wrong:g}, which expresses nothing; scales are above 0, so quantize the model again")


def _quantized(view: NodeView) -> Spec:
    if view.dtype(0).kind not in "fi":
        view.fail(f"quantizes {view.dtype(0)}; it takes floats")
    _check(view)
    dtype = quantized_dtype(view)
    if dtype.kind not in "iu" and float_kind(view) is None:
        view.fail(f"makes {dtype}, which is no quantized type")
    return view.shape(0), dtype


def _quantized_value(view: NodeView) -> Array:
    x, scale = view.value(0), expanded(view, view.value(1))
    narrow = float_kind(view)
    if narrow is not None:
        return narrow.rounded(x / scale, saturates(view))
    zero_point = expanded(view, view.value(2)) if view.has(2) else np.zeros((), np.int64)
    return quantize(x, scale, zero_point, limits_of(view)).astype(quantized_dtype(view))


def _dequantized(view: NodeView) -> Spec:
    if view.has(2) and view.dtype(2) != view.dtype(0):
        view.fail(f"has values of the type {view.dtype(0)} and zero points of the type {view.dtype(2)}")
    _check(view)
    return view.shape(0), FLOAT32


def dequantized_value(view: NodeView, x: Array) -> Array:
    """Return what a DequantizeLinear with known scales makes of ``x``, its first input."""
    zero_point = expanded(view, view.value(2)) if view.has(2) else np.zeros((), x.dtype)
    return dequantize(x, expanded(view, view.value(1)), zero_point)


def _dynamic(view: NodeView) -> Spec:
    return view.floats(0), UINT8


QUANTIZE_LINEAR = Operator(_quantized, _quantized_value)
DEQUANTIZE_LINEAR = Operator(_dequantized)
"""Its value is never told beforehand: weights stay integers until a pass has seen what reads them."""

DYNAMIC_QUANTIZE_LINEAR = Operator(_dynamic, infer_more=lambda _view: (((), FLOAT32), ((), UINT8)))

OPERATORS: dict[str, Operator] = {
    "DequantizeLinear": DEQUANTIZE_LINEAR,
    "DynamicQuantizeLinear": DYNAMIC_QUANTIZE_LINEAR,
    "QuantizeLinear": QUANTIZE_LINEAR,
}

QUANTIZED = frozenset(
    {
        "Dequantize",
        "QuantAdd",
        "QuantConcat",
        "QuantConv",
        "QuantLookup",
        "QuantPad",
        "QuantPool",
        "QuantResize",
        "QuantScale",
        "QuantSlice",
        "QuantView",
        "QuantVolumeConv",
        "Quantize",
    }
)
"""Operators of an optimised graph on bytes, or between them and floats."""
