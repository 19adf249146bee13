"""Cast and CastLike."""

from __future__ import annotations

from typing import Any

import numpy as np

from powerlab.engine.ir.element_types import DTYPES, engine_dtype
from powerlab.engine.ir.graph import Array
from powerlab.engine.ir.narrow_types import NARROW, NarrowFloat, NarrowInteger, held
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import NodeView, Spec


def whole_range(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the smallest and the largest number of an integer type that the engine, which has int64, holds."""
    limits = np.iinfo(dtype)
    return int(limits.min), min(int(limits.max), int(np.iinfo(np.int64).max))


def cast_value(value: Array, dtype: np.dtype[Any]) -> Array:
    """Return a value in another type.

    Whole numbers keep the lowest bits. ONNX leaves open what floats outside an integer type's range become: here the
    nearest number of the type, and not-a-number 0.
    """
    if value.dtype.kind != "f" or dtype.kind not in "iu":
        return value.astype(dtype)
    low, high = whole_range(dtype)
    cut = np.trunc(np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = np.where(cut >= high, 0, np.where(cut <= low, 0, cut)).astype(dtype)
    return np.where(cut >= high, dtype.type(high), np.where(cut <= low, dtype.type(low), inside)).astype(dtype)


def to_half(view: NodeView) -> bool:
    """Say whether a node casts floats to float16: then they are rounded to it, and go on as float32."""
    return view.node.op_type == "Cast" and DTYPES.get(view.integer("to", 0)) == np.float16 and view.dtype(0).kind == "f"


def narrow_target(view: NodeView) -> NarrowFloat | NarrowInteger | None:
    """Return the type that numpy lacks to which a node casts; None where it casts to another."""
    return NARROW.get(view.integer("to", 0))


def saturates(view: NodeView) -> bool:
    """Say whether a node makes the largest number of its type of what lies past it."""
    return bool(view.integer("saturate", 1))


def cast_dtype(view: NodeView) -> np.dtype[Any]:
    """Return the type that a Cast or CastLike node casts to, as the engine holds it."""
    if view.node.op_type == "CastLike":
        return view.dtype(1)
    return stated_dtype(view, "to", 0)


def stated_dtype(view: NodeView, attribute: str, default: int) -> np.dtype[Any]:
    """Return the type that an attribute states by its ONNX number, as the engine holds it."""
    number = view.integer(attribute, default)
    if number in NARROW:
        return held(NARROW[number])
    if number not in DTYPES:
        view.fail(f"makes the ONNX element type {number}, which the engine does not read")
    return engine_dtype(DTYPES[number])


def cast_to_narrow(value: Array, kind: NarrowFloat | NarrowInteger, saturate: bool) -> Array:
    """Return a value in a type that numpy lacks; integers keep the lowest bits of the whole number."""
    if isinstance(kind, NarrowFloat):
        return kind.rounded(value.astype(np.float32), saturate)
    whole = cast_value(value, np.dtype(np.int64))
    return kind.decoded((whole & ((1 << kind.bits) - 1)).astype(np.uint8))


def _cast(view: NodeView) -> Spec:
    return view.shape(0), cast_dtype(view)


def _evaluated(view: NodeView) -> Array:
    value, narrow = view.value(0), narrow_target(view)
    if narrow is not None:
        return cast_to_narrow(value, narrow, saturates(view))
    return value.astype(np.float16) if to_half(view) else cast_value(value, cast_dtype(view))


CAST = Operator(_cast, _evaluated)
