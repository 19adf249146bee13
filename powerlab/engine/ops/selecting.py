"""Operators that make as many rows as their inputs' values say: Compress, NonMaxSuppression, NonZero, Unique.

numpy computes them, between two stages of a plan where their inputs are no constants (:mod:`powerlab.engine.staged`).

Source: https://onnx.ai/onnx/operators (Compress, NonMaxSuppression, NonZero, Unique).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator, of_values
from powerlab.engine.ops.view import FLOAT32, NodeView

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
    least = _number(view, 4, 0.0) if view.has(4) else None
    corners = _centred(boxes) if view.integer("center_point_box", 0) else _ordered(boxes)
    rows = [
        (image, kind, box)
        for image in range(scores.shape[0])
        for kind in range(scores.shape[1])
        for box in _left(corners[image], scores[image, kind], most, overlap, least)
    ]
    return np.array(rows, np.int64).reshape(-1, 3)


def _number(view: NodeView, index: int, usual: float) -> float:
    if not view.has(index):
        return usual
    value = view.value(index)
    if value.size != 1:
        view.fail(f"needs one number as input {index + 1}, but it has {value.size}")
    return float(value.reshape(-1)[0])


def _ordered(boxes: Array) -> Array:
    """Return low and high corners of boxes that are given by any two opposite corners, y first."""
    return np.concatenate((np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])), -1)


def _centred(boxes: Array) -> Array:
    """Return low and high corners of boxes that are given by their middle and size, x first."""
    half = boxes[..., 2:] / np.float32(2)
    return np.concatenate((boxes[..., :2] - half, boxes[..., :2] + half), -1)


def _left(corners: Array, scores: NDArray[np.float32], most: int, overlap: float, least: float | None) -> list[int]:
    """Return the boxes of one class that no better box suppresses, the best first."""
    waiting = np.argsort(-scores, kind="stable")
    if least is not None:
        waiting = waiting[scores[waiting] > least]
    found: list[int] = []
    while waiting.size and len(found) < most:
        best, waiting = waiting[0], waiting[1:]
        found.append(int(best))
        waiting = waiting[_shared(corners[best], corners[waiting]) <= overlap]
    return found


def _shared(box: Array, others: Array) -> Array:
    """Return intersection over union of a box with others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    both = np.prod(np.maximum(sides, np.float32(0)), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.where(both > 0, both / np.where(both > 0, areas - both, 1), np.float32(0))


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
