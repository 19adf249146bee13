"""The taps of a resized axis: of which old pixels, with which weights, each new one is the sum.

Source: the formulas of https://onnx.ai/onnx/operators/onnx__Resize.html; the cubic ones are those of R. G. Keys, IEEE
Transactions on Acoustics, Speech, and Signal Processing 29(6), 1981.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.resizing import AxisResize, Resizing

Doubles = NDArray[np.float64]

NOTHING = -1
"""The place of a tap where there is no old pixel: the new one has the value that stands for all outside."""


def identity_taps(size: int) -> Array:
    """Return the taps of an axis that stays as it is."""
    return np.stack((np.arange(size), np.ones(size)), axis=-1).astype(np.float32)[:, None]


def axis_taps(resize: Resizing, one: AxisResize) -> Array:
    """Return the taps of one axis, shape (new pixels, taps, 2): each the place of an old pixel, then its weight."""
    at = _old_coordinates(resize, one)
    if resize.mode == "nearest":
        places, weights = _nearest(at, resize.rounding)[:, None], np.ones((one.new, 1))
    else:
        base = np.ceil(at) - 1
        scale = min(one.scale, 1.0) if resize.antialias else 1.0
        first = math.floor(-(1 if resize.mode == "linear" else 2) / scale) + 1
        offsets = np.arange(first, 2 - first)
        distances = (offsets - (at - base)[:, None]) * scale
        weights = _linear(distances) if resize.mode == "linear" else _cubic(distances, resize.cubic)
        places = base[:, None] + offsets
        if resize.excludes_outside:
            weights = np.where((places < 0) | (places >= one.old), 0.0, weights)
        if resize.excludes_outside or resize.antialias:
            total = weights.sum(axis=1, keepdims=True)
            weights = weights / np.where(total == 0, 1.0, total)
    places = np.clip(places, 0, one.old - 1)
    if resize.coordinates == "tf_crop_and_resize":
        places[(at < 0) | (at > one.old - 1)] = NOTHING
    return np.stack((places, weights), axis=-1).astype(np.float32)


def _old_coordinates(resize: Resizing, one: AxisResize) -> Doubles:
    new, length = np.arange(one.new, dtype=np.float64), one.scale * one.old
    match resize.coordinates:
        case "asymmetric":
            return new / one.scale
        case "align_corners":
            return np.zeros(one.new) if length == 1 else new * (one.old - 1) / (length - 1)
        case "tf_crop_and_resize":
            part, last = one.end - one.begin, one.old - 1
            along = np.full(one.new, part * last / 2) if length == 1 else new * part * last / (length - 1)
            return along + one.begin * last
        case "pytorch_half_pixel" if length == 1:
            return np.zeros(one.new)
        case "half_pixel_symmetric":
            return one.old / 2 * (1 - one.new / length) + (new + 0.5) / one.scale - 0.5
    return (new + 0.5) / one.scale - 0.5


def _nearest(at: Doubles, rounding: str) -> Doubles:
    match rounding:
        case "floor":
            return np.floor(at)
        case "ceil":
            return np.ceil(at)
        case "round_prefer_ceil":
            return np.floor(at + 0.5)
    return np.ceil(at - 0.5)


def _linear(distances: Doubles) -> Doubles:
    weights: Doubles = np.maximum(1 - np.abs(distances), 0.0)
    return weights


def _cubic(distances: Doubles, a: float) -> Doubles:
    x = np.abs(distances)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    weights: Doubles = np.where(x <= 1, near, np.where(x < 2, far, 0.0))
    return weights
