"""Resize and its forerunner Upsample, as far as the engine has them: nearest neighbour by whole factors."""

from __future__ import annotations

from powerlab.engine.operators.base import Operator
from powerlab.engine.operators.view import FLOAT32, NodeView, Spec

_COORDINATES = ("half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric")
"""With whole factors all of these find the same nearest pixel; ``align_corners`` and crops do not."""


def resize_factors(view: NodeView) -> tuple[int, int]:
    """Return by how much a Resize or Upsample node stretches height and width.

    Every pixel is repeated as often as any other: so it is where ``asymmetric`` coordinates are rounded down, and where
    coordinates of pixels' middles, which are never half-way between two, are rounded to the nearest.
    """
    shape = view.floats(0, 4)
    if view.text("mode", "nearest") != "nearest":
        view.fail(f"resizes by {view.text('mode', 'nearest')!r}; the engine resizes by the nearest pixel only")
    coordinates, rounding = _coordinates(view)
    if coordinates not in _COORDINATES:
        view.fail(f"has the coordinates {coordinates!r}, which the engine does not resize by")
    if rounding not in (("floor",) if coordinates == "asymmetric" else ("round_prefer_floor", "round_prefer_ceil")):
        view.fail(f"rounds by {rounding!r} with {coordinates!r} coordinates, which the engine does not")
    scales = _scales(view, shape)
    factors = tuple(int(scale) for scale in scales)
    if len(scales) != 4 or factors[:2] != (1, 1) or any(f < 1 or f != s for f, s in zip(factors, scales, strict=True)):
        view.fail(f"resizes by {tuple(scales)}; the engine stretches height and width by whole factors only")
    return factors[2], factors[3]


def _coordinates(view: NodeView) -> tuple[str, str]:
    """Return coordinates and rounding; before opset 11 there was one way alone."""
    if view.node.op_type == "Upsample" or (len(view.node.inputs) <= 2 and not view.has_attribute("nearest_mode")):
        return view.text("coordinate_transformation_mode", "asymmetric"), view.text("nearest_mode", "floor")
    return (
        view.text("coordinate_transformation_mode", "half_pixel"),
        view.text("nearest_mode", "round_prefer_floor"),
    )


def _scales(view: NodeView, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Return the factors: an attribute (opset 7), input 2 (to opset 10), input 3, or sizes as input 4 (since 11)."""
    if view.has_attribute("scales"):
        return view.numbers("scales", ())
    if view.has(3):
        sizes = view.int_values(3)
        return tuple(size / old for size, old in zip(sizes, shape, strict=True)) if len(sizes) == 4 else sizes
    values = view.value(2 if len(view.node.inputs) > 2 else 1)
    return tuple(float(value) for value in values.reshape(-1))


def _resize(view: NodeView) -> Spec:
    n, c, h, w = view.floats(0, 4)
    scale_h, scale_w = resize_factors(view)
    return (n, c, h * scale_h, w * scale_w), FLOAT32


RESIZE = Operator(_resize)
