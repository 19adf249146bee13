"""Resize and its forerunner Upsample: which pixels of the old image each new one is made of, axis by axis.

Source: https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

MODES = ("nearest", "linear", "cubic")
COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_crop_and_resize",
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
_MIDDLES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
"""With whole factors all of these find the same nearest pixel; ``align_corners`` and crops do not."""

_X, _ROI, _SCALES, _SIZES = range(4)

_LONGEST_AXIS = 2**31 - 1


class AxisResize(Struct, frozen=True, kw_only=True):
    """How one axis changes its size: to ``new`` from ``old``, by ``scale``; a crop begins and ends at parts of it."""

    axis: int
    old: int
    new: int
    scale: float
    begin: float = 0.0
    end: float = 1.0


class Resizing(Struct, frozen=True, kw_only=True):
    """A Resize or Upsample node in words of its own; ``axes`` are those that change, in order."""

    axes: tuple[AxisResize, ...]
    shape: tuple[int, ...]
    mode: str
    coordinates: str
    rounding: str
    cubic: float
    excludes_outside: bool
    antialias: bool
    extrapolation: float


def resizing(view: NodeView) -> Resizing:
    """Return what a Resize or Upsample node asks for.

    Raises:
        PowerlabError: scales and sizes do not fit the image, or an attribute is none of ONNX's.
    """
    shape = view.floats(_X)
    mode = view.text("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    coordinates, rounding = _coordinates(view)
    for name, value, known in (
        ("mode", mode, MODES),
        ("coordinate_transformation_mode", coordinates, COORDINATES),
        ("nearest_mode", rounding, ROUNDINGS),
    ):
        if value not in known:
            view.fail(f"has {name} {value[:30]!r}; known are {', '.join(known)}")
    antialias = bool(view.integer("antialias", 0))
    if antialias and mode == "nearest":
        view.fail("asks for antialias with the nearest pixel, which has no meaning")
    named = view.integers("axes", tuple(range(len(shape))))
    axes = tuple(view.axis(axis, len(shape)) for axis in named)
    view.axes(named, len(shape))
    begins, ends = (
        _crop(view, len(axes)) if coordinates == "tf_crop_and_resize" else ((0.0,) * len(axes), (1.0,) * len(axes))
    )
    changed: list[AxisResize] = []
    made = list(shape)
    for at, (new, scale) in enumerate(_sizes(view, [shape[axis] for axis in axes])):
        one = AxisResize(axis=axes[at], old=shape[axes[at]], new=new, scale=scale, begin=begins[at], end=ends[at])
        if new < 1:
            view.fail(f"resizes {shape} to an axis of {new}")
        made[one.axis] = new
        if not math.isclose(scale, 1.0) or new != one.old or (one.begin, one.end) != (0.0, 1.0):
            changed.append(one)
    return Resizing(
        axes=tuple(sorted(changed, key=lambda one: one.axis)),
        shape=tuple(made),
        mode=mode,
        coordinates=coordinates,
        rounding=rounding,
        cubic=view.number("cubic_coeff_a", -0.75),
        excludes_outside=bool(view.integer("exclude_outside", 0)),
        antialias=antialias,
        extrapolation=view.number("extrapolation_value", 0.0),
    )


def whole_factors(resize: Resizing) -> tuple[int, int] | None:
    """Return by how much an image's height and width are stretched where every pixel is repeated as often as any other.

    So it is where ``asymmetric`` coordinates are rounded down, and where coordinates of pixels' middles, which are
    never half-way between two, are rounded to the nearest.
    """
    if resize.mode != "nearest" or len(resize.shape) != 4 or resize.coordinates not in _MIDDLES:
        return None
    usual = ("floor",) if resize.coordinates == "asymmetric" else ("round_prefer_floor", "round_prefer_ceil")
    if resize.rounding not in usual:
        return None
    factors = [1, 1, 1, 1]
    for one in resize.axes:
        factors[one.axis] = int(one.scale)
        if one.new != one.old * factors[one.axis] or one.scale != factors[one.axis]:
            return None
    return (factors[2], factors[3]) if factors[:2] == [1, 1] else None


def _coordinates(view: NodeView) -> tuple[str, str]:
    """Return coordinates and rounding; before opset 11 there was one way alone."""
    if view.node.op_type == "Upsample" or (len(view.node.inputs) <= 2 and not view.has_attribute("nearest_mode")):
        return view.text("coordinate_transformation_mode", "asymmetric"), view.text("nearest_mode", "floor")
    return (
        view.text("coordinate_transformation_mode", "half_pixel"),
        view.text("nearest_mode", "round_prefer_floor"),
    )


def _crop(view: NodeView, axes: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return where the crop begins and ends on each axis, as parts of its length."""
    values = tuple(float(value) for value in view.value(_ROI).reshape(-1)) if view.has(_ROI) else ()
    if len(values) != 2 * axes:
        view.fail(f"crops by {len(values)} numbers (input 2); it needs a beginning and an end for {axes} axes")
    return values[:axes], values[axes:]


def _sizes(view: NodeView, old: Sequence[int]) -> list[tuple[int, float]]:
    """Return the new size of each axis and its scale.

    Scales are an attribute (opset 7), input 2 (to opset 10) or input 3; sizes are input 4 (since opset 11).
    """
    if view.has(_SIZES) and not (view.has(_SCALES) and view.value(_SCALES).size):
        sizes = view.int_values(_SIZES)
        if len(sizes) != len(old) or 0 in old:
            view.fail(f"resizes {len(old)} axes to the sizes {sizes[:8]}")
        scales = [size / length for size, length in zip(sizes, old, strict=True)]
        policy = view.text("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch":
            return list(zip(sizes, scales, strict=True))
        if policy not in ("not_larger", "not_smaller"):
            view.fail(f"has keep_aspect_ratio_policy {policy[:30]!r}; known are stretch, not_larger and not_smaller")
        scale = min(scales) if policy == "not_larger" else max(scales)
        return [(int(scale * length + 0.5), scale) for length in old]
    if view.has_attribute("scales"):
        scales = list(view.numbers("scales", ()))
    else:
        scales = [float(value) for value in view.value(_SCALES if len(view.node.inputs) > 2 else 1).reshape(-1)]
    if len(scales) != len(old) or not all(0 < scale < math.inf for scale in scales):
        view.fail(f"resizes {len(old)} axes by the scales {tuple(scales[:8])}; each needs one above 0")
    # Sizes are cut in float32, as the scales are given: 0.7 times 10 is 7, though 0.7 is a little less in float32.
    with np.errstate(over="ignore"):
        products = [FLOAT32.type(scale) * FLOAT32.type(length) for length, scale in zip(old, scales, strict=True)]
    if not all(product <= _LONGEST_AXIS for product in products):
        view.fail(f"resizes {tuple(old[:8])} by {tuple(scales[:8])}, which is larger than any tensor may be")
    return [(int(product), scale) for product, scale in zip(products, scales, strict=True)]


def _resize(view: NodeView) -> Spec:
    return resizing(view).shape, FLOAT32


RESIZE = Operator(_resize)
