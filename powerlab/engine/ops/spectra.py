"""Spectra: DFT, STFT, and the tables that go with them (windows, MelWeightMatrix).

Source: https://onnx.ai/onnx/operators (DFT, STFT, BlackmanWindow, HammingWindow, HannWindow, MelWeightMatrix).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.engine.ir.element_types import FLOAT
from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.casting import stated_dtype
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

_LONGEST = 2**14
"""Elements of a transform; its matrix has the square of it, and half a gigabyte is enough."""


class Transform(Struct, frozen=True):
    """A discrete Fourier transform along an axis.

    Attributes:
        axis: which.
        given: elements of the axis before; those beyond ``length`` are not read, missing ones are 0.
        length: of the transform.
        parts: numbers of an element before, 1 (real) or 2 (complex).
        inverse: whether it goes back.
        onesided: whether what lies beyond half the length is left out, of the spectrum of real numbers.
    """

    axis: int
    given: int
    length: int
    parts: int
    inverse: bool
    onesided: bool

    @property
    def made(self) -> tuple[int, int]:
        """Return how many elements there are afterwards, and the numbers of each."""
        if self.onesided:
            return (self.length, 1) if self.inverse else (self.length // 2 + 1, 2)
        return self.length, 2

    def matrix(self) -> Array:
        """Return what the numbers read are multiplied by: float32, (elements read × parts, elements made × parts)."""
        half = self.onesided and self.inverse
        read = min(self.given, self.length // 2 + 1 if half else self.length)
        count, parts = self.made
        turns = np.outer(np.arange(read), np.arange(count)) % self.length
        angle = turns * (2 * math.pi / self.length * (1 if self.inverse else -1))
        real, imaginary = np.cos(angle), np.sin(angle)
        # (a + ib)(cos + i sin): rows are a and b, columns the real and the imaginary part.
        whole = np.stack((np.stack((real, imaginary), -1), np.stack((-imaginary, real), -1)), 1)
        if half:  # the other half mirrors this one
            twice = np.where((np.arange(read) * 2) % self.length == 0, 1, 2)
            whole = whole * twice[:, None, None, None]
        if self.inverse:
            whole = whole / self.length
        return whole[:, : self.parts, :, :parts].reshape(read * self.parts, count * parts).astype(np.float32)


def transform_of(view: NodeView) -> Transform:
    """Return the transform of a DFT node."""
    shape = view.floats(0)
    if len(shape) < 2 or shape[-1] not in (1, 2):
        view.fail(f"needs real or complex numbers along its last axis, 1 or 2, but it has the shape {shape}")
    wanted = _one(view, 2) if view.has(2) else view.integer("axis", -2)
    axis = view.axis(wanted, len(shape))
    if axis == len(shape) - 1:
        view.fail("transforms along its last axis, which holds real and imaginary parts")
    inverse, onesided = bool(view.integer("inverse", 0)), bool(view.integer("onesided", 0))
    if onesided and shape[-1] != (2 if inverse else 1):
        view.fail("is onesided, which only the spectrum of real numbers can be")
    usual = 2 * (shape[axis] - 1) if onesided and inverse else shape[axis]
    length = _one(view, 1) if view.has(1) else usual
    return Transform(axis, shape[axis], _transformable(view, length), shape[-1], inverse, onesided)


def _transformable(view: NodeView, length: int) -> int:
    if not 0 < length <= _LONGEST:
        view.fail(f"transforms {length} elements; the engine takes 1 to {_LONGEST}")
    return length


def _one(view: NodeView, index: int) -> int:
    value = view.value(index)
    if value.size != 1 or value.dtype.kind not in "iu":
        view.fail(f"needs one integer as input {index + 1}")
    return int(value.reshape(-1)[0])


def _dft(view: NodeView) -> Spec:
    transform, shape = transform_of(view), view.shape(0)
    count, parts = transform.made
    return (*shape[: transform.axis], count, *shape[transform.axis + 1 : -1], parts), FLOAT32


class Frames(Struct, frozen=True):
    """How a STFT cuts a signal: ``count`` frames, each ``step`` after the one before."""

    count: int
    step: int
    transform: Transform


def frames_of(view: NodeView) -> Frames:
    """Return the frames of a STFT node."""
    shape = view.floats(0)
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[-1] not in (1, 2)):
        view.fail(f"needs a signal of (batch, length, 1 or 2), but it has the shape {shape}")
    parts = shape[2] if len(shape) == 3 else 1
    step = _one(view, 1)
    length = _one(view, 3) if view.has(3) else (view.floats(2, 1)[0] if view.has(2) else 0)
    if view.has(2) and view.floats(2, 1) != (length,):
        view.fail(f"has frames of {length} elements and a window of the shape {view.shape(2)}, which do not fit")
    if step < 1 or not 0 < length <= shape[1]:
        view.fail(f"cuts frames of {length}, {step} apart, out of {shape[1]} elements")
    onesided = bool(view.integer("onesided", 1)) and parts == 1
    count = (shape[1] - length) // step + 1
    return Frames(count, step, Transform(1, length, _transformable(view, length), parts, False, onesided))


def _stft(view: NodeView) -> Spec:
    frames = frames_of(view)
    return (view.shape(0)[0], frames.count, *frames.transform.made), FLOAT32


def _window(curve: Callable[[Array], Array]) -> Operator:
    def values(view: NodeView) -> Array:
        size = _transformable(view, _one(view, 0))
        last = size if view.integer("periodic", 1) else max(1, size - 1)
        return curve(np.arange(size) * (2 * math.pi / last)).astype(_made(view))

    return Operator(lambda view: (values(view).shape, _made(view)), values)


def _made(view: NodeView) -> np.dtype[Any]:
    return stated_dtype(view, "output_datatype", FLOAT)


def _mel(view: NodeView) -> Array:
    """Return the triangles, evenly spread in mel, by which a spectrum is summed: (bins of the spectrum, bands)."""
    bands, length, rate = (_one(view, index) for index in range(3))
    _transformable(view, length)
    _transformable(view, bands)
    low, high = (2595 * math.log10(1 + float(view.value(index).reshape(-1)[0]) / 700) for index in (3, 4))
    mel = np.arange(bands + 2) * ((high - low) / (bands + 2)) + low
    edges = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    bins = np.arange(length // 2 + 1)[:, None]
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rising = np.where(middle > left, (bins - left) / np.maximum(1, middle - left), 1.0)
    falling = (right - bins) / np.maximum(1, right - middle)
    made = np.where((bins >= left) & (bins <= middle), rising, 0.0)
    made = np.where((bins >= middle) & (bins < right), falling, made)
    return made.astype(_made(view))


OPERATORS: dict[str, Operator] = {
    "BlackmanWindow": _window(lambda angle: 0.42 - 0.5 * np.cos(angle) + 0.08 * np.cos(2 * angle)),
    "DFT": Operator(_dft),
    "HammingWindow": _window(lambda angle: 25 / 46 - 21 / 46 * np.cos(angle)),
    "HannWindow": _window(lambda angle: 0.5 - 0.5 * np.cos(angle)),
    "MelWeightMatrix": Operator(lambda view: (_mel(view).shape, _made(view)), _mel),
    "STFT": Operator(_stft),
}
"""Operator → rule."""
