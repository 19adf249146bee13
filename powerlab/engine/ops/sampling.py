"""RoiAlign, GridSample and AffineGrid: pixels from anywhere in an image.

Source: https://onnx.ai/onnx/operators (RoiAlign, GridSample, AffineGrid).
"""

from __future__ import annotations

from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.convolution import image_shape
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec

ROI_MODES = ("avg", "max")
ROI_COORDINATES = ("output_half_pixel", "half_pixel")
SAMPLINGS = {"nearest": 0, "linear": 1, "bilinear": 1, "cubic": 2, "bicubic": 2}
"""Mode of a GridSample, by its names before and since opset 20 → its number in the kernel."""

PADDINGS = ("zeros", "border", "reflection")
"""What stands for pixels outside, in the order of the kernel's numbers."""


MAX_SAMPLING_RATIO = 256
"""Networks have 2 or 4; as many samples are taken as the square of it for each bin."""


def one_of(view: NodeView, name: str, usual: str, known: tuple[str, ...]) -> int:
    """Return which of the known texts an attribute is."""
    text = view.text(name, usual)
    if text not in known:
        view.fail(f"has {name} {text[:30]!r}; known are {', '.join(known)}")
    return known.index(text)


def _roi_align(view: NodeView) -> Spec:
    channels = view.floats(0, 4)[1]
    regions = view.floats(1, 2)
    if regions[1] != 4 or view.shape(2) != regions[:1] or view.dtype(2).kind not in "iu":
        view.fail(
            f"has regions of the shape {regions} and images of the shape {view.shape(2)}; it needs 4 numbers each"
        )
    size = (view.integer("output_height", 1), view.integer("output_width", 1))
    if min(size) < 1 or not 0 <= view.integer("sampling_ratio", 0) <= MAX_SAMPLING_RATIO:
        view.fail(
            f"has the output size {size} and sampling_ratio {view.integer('sampling_ratio', 0)}; "
            f"it may have up to {MAX_SAMPLING_RATIO} samples along each side of a bin"
        )
    one_of(view, "mode", "avg", ROI_MODES)
    one_of(view, "coordinate_transformation_mode", "half_pixel", ROI_COORDINATES)
    return (regions[0], channels, *size), FLOAT32


def _grid_sample(view: NodeView) -> Spec:
    images, channels, *pixels = image_shape(view)
    grid = view.floats(1)
    axes = len(pixels)
    if axes not in (2, 3) or len(grid) != axes + 2 or (grid[0], grid[-1]) != (images, axes):
        view.fail(f"samples {view.shape(0)} at coordinates of the shape {grid}, which do not fit")
    mode = view.text("mode", "linear")
    if mode not in SAMPLINGS or (SAMPLINGS[mode] == SAMPLINGS["cubic"] and axes > 2):
        view.fail(f"has mode {mode[:30]!r} for {axes} axes; known are {', '.join(SAMPLINGS)}, cubic ones for two axes")
    one_of(view, "padding_mode", "zeros", PADDINGS)
    return (images, channels, *grid[1:-1]), FLOAT32


def _affine_grid(view: NodeView) -> Spec:
    theta, size = view.floats(0, 3), view.int_values(1)
    axes = len(size) - 2
    if axes not in (2, 3) or theta != (size[0], axes, axes + 1) or min(size) < 1:
        view.fail(f"transforms images of the sizes {size[:8]} by matrices of the shape {theta}, which do not fit")
    return (size[0], *size[2:], axes), FLOAT32


ROI_ALIGN = Operator(_roi_align)
GRID_SAMPLE = Operator(_grid_sample)
AFFINE_GRID = Operator(_affine_grid)
