"""Operators that reduce axes or go along one: ReduceSum and its kin, ArgMax, ArgMin, CumProd, CumSum, TopK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.view import INT64, NodeView, Spec


def _extremes(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value of a type: the maximum and the minimum of no values at all."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (False, True) if dtype.kind == "b" else (-np.inf, np.inf)


def _max(x: Array, **how: Any) -> Any:
    return np.max(x, initial=_extremes(x.dtype)[0], **how)


def _min(x: Array, **how: Any) -> Any:
    return np.min(x, initial=_extremes(x.dtype)[1], **how)


def _log_sum_exp(x: Array, **how: Any) -> Array:
    x = x if x.dtype.kind == "f" else x.astype(np.float64)  # differences of unsigned numbers would wrap around
    most = _max(x, **{**how, "keepdims": True})
    most = np.where(np.isfinite(most), most, 0)
    total = np.log(np.sum(np.exp(x - most), **how))
    return np.asarray(total + most.reshape(total.shape))


def _mean(x: Array, **how: Any) -> Array:
    if x.dtype.kind == "f":
        return np.asarray(np.mean(x, dtype=np.float64, **how))
    total = np.sum(x, dtype=np.int64, **how)
    return np.asarray(np.trunc(total / (x.size // max(total.size, 1))))


REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "ReduceL1": ("l1", lambda x, **how: np.sum(np.abs(x), **how)),
    "ReduceL2": ("l2", lambda x, **how: np.sqrt(np.sum(np.square(x, dtype=np.float64), **how))),
    "ReduceLogSum": ("log_sum", lambda x, **how: np.log(np.sum(x, **how))),
    "ReduceLogSumExp": ("log_sum_exp", _log_sum_exp),
    "ReduceMax": ("max", _max),
    "ReduceMean": ("mean", _mean),
    "ReduceMin": ("min", _min),
    "ReduceProd": ("product", np.prod),
    "ReduceSum": ("sum", np.sum),
    "ReduceSumSquare": ("squares", lambda x, **how: np.sum(np.square(x), **how)),
}
"""Operator → what its kernels are called by, and what it computes in numpy."""


def reduced_axes(view: NodeView) -> tuple[int, ...]:
    """Return the axes a node reduces: an attribute before opset 13 or 18, an input since."""
    rank = len(view.shape(0))
    axes = view.int_values(1) if view.has(1) else view.integers("axes", ())
    if not axes and not view.integer("noop_with_empty_axes", 0):
        axes = tuple(range(rank))
    return view.axes(axes, rank)


def _keeps_axes(view: NodeView) -> bool:
    """Say whether reduced axes stay, of size 1."""
    return view.integer("keepdims", 1) == 1


def _reduce(view: NodeView) -> Spec:
    shape, axes = view.shape(0), reduced_axes(view)
    if view.dtype(0).kind == "b" and view.node.op_type not in ("ReduceMax", "ReduceMin"):
        view.fail("does not take bool tensors")
    if _keeps_axes(view):
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape)), view.dtype(0)
    return tuple(size for axis, size in enumerate(shape) if axis not in axes), view.dtype(0)


def _reduced(view: NodeView) -> Array:
    _, function = REDUCTIONS[view.node.op_type]
    axes, value = reduced_axes(view), view.value(0)
    return np.asarray(function(value, axis=axes, keepdims=_keeps_axes(view)))


def only_axis(view: NodeView, usual: int) -> int:
    """Return the attribute ``axis``."""
    return view.axis(view.integer("axis", usual), len(view.shape(0)))


def _arg(view: NodeView) -> Spec:
    axis, shape = only_axis(view, 0), view.shape(0)
    kept = (1,) if _keeps_axes(view) else ()
    return (*shape[:axis], *kept, *shape[axis + 1 :]), INT64


def _argument(view: NodeView) -> Array:
    axis, value = only_axis(view, 0), view.value(0)
    function = np.argmax if view.node.op_type == "ArgMax" else np.argmin
    keep = _keeps_axes(view)
    if not view.integer("select_last_index", 0):
        return np.asarray(function(value, axis=axis, keepdims=keep))
    return np.asarray(value.shape[axis] - 1 - function(np.flip(value, axis), axis=axis, keepdims=keep))


def running_axis(view: NodeView) -> int:
    """Return the axis along which a CumSum or CumProd node goes."""
    axis = view.value(1)
    if axis.size != 1:
        view.fail("needs one axis")
    return view.axis(int(axis.reshape(-1)[0]), len(view.shape(0)))


def _running(view: NodeView) -> Spec:
    running_axis(view)
    return same_as_input(view)


def _cumulated(view: NodeView) -> Array:
    axis, value = running_axis(view), view.value(0)
    value = np.flip(value, axis) if view.integer("reverse", 0) else value
    adds = view.node.op_type == "CumSum"
    if view.integer("exclusive", 0):
        value = np.roll(value, 1, axis)
        value[(slice(None),) * axis + (slice(0, 1),)] = 0 if adds else 1
    total = (np.cumsum if adds else np.cumprod)(value, axis, dtype=value.dtype)
    return np.asarray(np.flip(total, axis) if view.integer("reverse", 0) else total)


def top_count(view: NodeView) -> int:
    """Return how many elements a TopK node keeps."""
    counts, size = (view.value(1) if view.has(1) else np.asarray(view.integer("k", -1))), 0
    size = view.shape(0)[only_axis(view, -1)]
    count = int(counts.reshape(-1)[0]) if counts.size == 1 else -1
    if not 0 <= count <= size:
        view.fail(f"keeps {count} of {size} elements")
    return count


def _top(view: NodeView) -> Spec:
    axis, shape = only_axis(view, -1), view.shape(0)
    return (*shape[:axis], top_count(view), *shape[axis + 1 :]), view.dtype(0)


def _topped(view: NodeView) -> tuple[Array, Array]:
    axis, value = only_axis(view, -1), view.value(0)
    if view.integer("largest", 1):  # back to front on both sides: of equal ones the first still comes first
        ordered = value.shape[axis] - 1 - np.flip(np.argsort(np.flip(value, axis), axis, kind="stable"), axis)
    else:
        ordered = np.argsort(value, axis, kind="stable")
    places = np.take(ordered, np.arange(top_count(view)), axis)
    return np.take_along_axis(value, places, axis), places


OPERATORS: dict[str, Operator] = {
    **dict.fromkeys(REDUCTIONS, Operator(_reduce, _reduced)),
    "ArgMax": Operator(_arg, _argument),
    "ArgMin": Operator(_arg, _argument),
    "CumProd": Operator(_running, _cumulated),
    "CumSum": Operator(_running, _cumulated),
    "TopK": Operator(_top, _topped, infer_more=lambda view: ((_top(view)[0], INT64),)),
}
"""Operator → rule."""
