"""Relu, LeakyRelu, Clip and Softmax."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from powerlab.engine.ir.graph import Array, Node
from powerlab.engine.ops.base import Operator, same_as_input
from powerlab.engine.ops.view import NodeView, Spec

Clamp = tuple[float, float]
NO_CLAMP: Clamp = (-math.inf, math.inf)
NO_SLOPE = 1.0

_FLOAT32_MAX = 3.4028234e38
"""Before opset 11, Clip says "no bound" with the largest float."""


def slope_of(node: Node) -> float:
    """Return what a lowered node multiplies by where it would put out a negative number, before it clamps."""
    return float(cast("float", node.attributes.get("slope", NO_SLOPE)))


def is_linear(node: Node) -> bool:
    """Say whether a lowered node ends without an activation."""
    return node.attributes["clamp"] == NO_CLAMP and slope_of(node) == NO_SLOPE and not ends_in_function(node)


def ends_in_function(node: Node) -> bool:
    """Say whether a lowered node applies a function of one number to its result, after its slope and clamp."""
    return "function" in node.attributes


def clip_bounds(view: NodeView) -> Clamp:
    """Return (low, high) of a Clip node, from attributes (before opset 11) or constant inputs; infinite where open."""
    low, high = (
        _bound(view, index, name, default)
        for index, (name, default) in enumerate((("min", -math.inf), ("max", math.inf)), start=1)
    )
    if math.isnan(low) or math.isnan(high):
        view.fail("clips at NaN")
    return (low if low > -_FLOAT32_MAX else -math.inf, high if high < _FLOAT32_MAX else math.inf)


def _bound(view: NodeView, index: int, name: str, default: float) -> float:
    if not view.has(index):
        return view.number(name, default)
    value = view.value(index)
    if value.size != 1:
        view.fail(f"needs one number as {name}, but it has {value.size}")
    return float(value.reshape(-1)[0])


def _relu(view: NodeView) -> Spec:
    if view.dtype(0).kind not in "fiu":
        view.fail(f"does not take {view.dtype(0)} tensors")
    return view.shape(0), view.dtype(0)


def _leaky_relu(view: NodeView) -> Spec:
    return view.floats(0), view.dtype(0)


def leak(view: NodeView) -> float:
    """Return the slope of a LeakyRelu node below 0."""
    return view.number("alpha", 0.01)


def has_known_bounds(view: NodeView) -> bool:
    """Say whether the bounds of a Clip node do not depend on a run."""
    return all(not view.has(index) or view.constant(index) is not None for index in (1, 2))


def _clip(view: NodeView) -> Spec:
    if view.dtype(0).kind == "f" and has_known_bounds(view):
        clip_bounds(view)
    for index in (1, 2):
        if view.has(index) and (view.dtype(index) != view.dtype(0) or math.prod(view.shape(index)) != 1):
            view.fail(f"needs one number of its own type as input {index + 1}")
    return _relu(view)


def _clipped(view: NodeView) -> Array:
    value = view.value(0)
    if value.dtype.kind == "f":
        low, high = clip_bounds(view)
        return np.minimum(np.maximum(value, np.float32(low)), np.float32(high))
    for index, function in ((1, np.maximum), (2, np.minimum)):
        if view.has(index):
            value = function(value, view.value(index).reshape(()))
    return value


def _leaked(view: NodeView) -> Array:
    return np.where(view.value(0) < 0, view.value(0) * np.float32(leak(view)), view.value(0))


def _rows(view: NodeView) -> tuple[Array, int | tuple[int, ...]]:
    """Return a Softmax node's input and the axes of one of its rows: until opset 13 all from ``axis`` on."""
    value, axis = view.value(0), softmax_axis(view)
    return value, tuple(range(axis, value.ndim)) if view.integer("flattens", 0) else axis


def _soft_maximum(view: NodeView) -> Array:
    value, axes = _rows(view)
    most = np.max(value, axes, keepdims=True)
    power = np.exp(value - most)
    shares = power / np.sum(power, axes, keepdims=True)
    return np.where(np.isneginf(most), 0, shares) if view.integer("masked", 0) else np.asarray(shares)


def _log_soft_maximum(view: NodeView) -> Array:
    value, axes = _rows(view)
    below = value - np.max(value, axes, keepdims=True)
    return np.asarray(below - np.log(np.sum(np.exp(below), axes, keepdims=True)))


def _hard_maximum(view: NodeView) -> Array:
    """Return 1 at the first of the largest numbers of each row."""
    value, axes = _rows(view)
    rows = value.reshape(*value.shape[: axes[0]], -1) if isinstance(axes, tuple) else np.moveaxis(value, axes, -1)
    hard = np.zeros_like(rows)
    np.put_along_axis(hard, np.argmax(rows, -1, keepdims=True), 1, -1)
    return hard.reshape(value.shape) if isinstance(axes, tuple) else np.moveaxis(hard, -1, axes)


def softmax_axis(view: NodeView) -> int:
    """Return the axis, counted from the front; the reader has written it out for every opset."""
    return view.axis(view.integer("axis", -1), len(view.floats(0)))


def _softmax(view: NodeView) -> Spec:
    softmax_axis(view)
    return same_as_input(view)


RELU = Operator(_relu, lambda view: np.maximum(view.value(0), view.dtype(0).type(0)))
LEAKY_RELU = Operator(_leaky_relu, _leaked)
CLIP = Operator(_clip, _clipped)
SOFTMAX = Operator(_softmax, _soft_maximum)
LOG_SOFTMAX = Operator(_softmax, _log_soft_maximum)
HARDMAX = Operator(_softmax, _hard_maximum)
