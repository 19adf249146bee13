"""Operators that make as many rows as their inputs' values say: Compress, NonMaxSuppression, NonZero, Unique.

numpy and native code compute them, between two stages of a plan where their inputs are no constants
(:mod:`powerlab.engine.staged`).

Source: https://onnx.ai/onnx/operators (Compress, NonMaxSuppression, NonZero, Unique).
"""

from __future__ import annotations

import math

import numpy as np

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, of_values
from powerlab.engine.ops.view import FLOAT32, NodeView
from powerlab.engine.target.tiers import native_engine

_CORNERS = 4
"""Numbers of a box."""


def _compress(view: NodeView) -> Array:
    value, condition = view.value(0), view.value(1)
    if condition.ndim != 1 or condition.dtype.kind != "b":
        view.fail(f"needs a list of truth values, but it has {condition.dtype} of shape {condition.shape}")
    axis = view.axis(view.integer("axis", 0), value.ndim) if view.has_attribute("axis") else None
    longest = value.size if axis is None else value.shape[axis]
    if condition.size > longest:
        view.fail(f"chooses among {condition.size} elements, but its input has {longest}")
    return np.compress(condition, value, axis)


def _suppressed(view: NodeView) -> Array:
    """Return (image, class, box) of every box that is left, class by class, the best first."""
    boxes, scores = view.value(0), view.value(1)
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape != (scores.shape[0], scores.shape[2], _CORNERS):
        view.fail(f"has boxes of shape {boxes.shape} and scores of shape {scores.shape}, which do not fit")
    if boxes.dtype != FLOAT32 or scores.dtype != FLOAT32:
        view.fail(f"needs boxes and scores in float32, but they are {boxes.dtype} and {scores.dtype}")
    most, overlap = int(_number(view, 2, 0)), _number(view, 3, 0.0)
    least = _number(view, 4, math.nan)
    corners = _centred(boxes) if view.integer("center_point_box", 0) else _ordered(boxes)
    corners, scores = np.ascontiguousarray(corners), np.ascontiguousarray(scores)
    rows = native_engine().suppress(corners, scores, most=most, overlap=overlap, least=least)
    return np.array(rows, np.int64).reshape(-1, 3)


def _number(view: NodeView, index: int, usual: float) -> float:
    if not view.has(index):
        return usual
    value = view.value(index)
    if value.size != 1:
        view.fail(f"needs one number as input {index + 1}, but it has {value.size}")
    number: float = value.reshape(-1)[0].item()
    return number


def _ordered(boxes: Array) -> Array:
    """Return low and high corners of boxes that are given by any two opposite corners, y first."""
    return np.concatenate((np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])), -1)


def _centred(boxes: Array) -> Array:
    """Return low and high corners of boxes that are given by their middle and size, x first."""
    half = boxes[..., 2:] / np.float32(2)
    return np.concatenate((boxes[..., :2] - half, boxes[..., :2] + half), -1)


def _non_zero(view: NodeView) -> Array:
    return np.array(np.nonzero(view.value(0)), np.int64).reshape(len(view.shape(0)), -1)


def _unique(view: NodeView) -> tuple[Array, ...]:
    value = view.value(0)
    axis = view.axis(view.integer("axis", 0), value.ndim) if view.has_attribute("axis") else None
    made, first, inverse, counts = np.unique(
        value, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not view.integer("sorted", 1):
        order = np.argsort(first, kind="stable")
        made = np.take(made, order, 0 if axis is None else axis)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    return made, *(one.astype(np.int64) for one in (first, inverse, counts))


OPERATORS: dict[str, Operator] = {
    "Compress": of_values(_compress),
    "NonMaxSuppression": of_values(_suppressed),
    "NonZero": of_values(_non_zero),
    "Unique": of_values(_unique),
}
"""Operator → rule."""
