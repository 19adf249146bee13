"""Gradients of pools: an average's is spread over its window, a maximum's goes to where it stood."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from powerlab.engine.ir.graph import IMAGE_AXES
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.pooling import pool_windows
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows


def _in_blocks(view: NodeView, windows: Windows) -> bool:
    """Say whether the engine has an operator for the gradient of a pool: over images, by windows without gaps."""
    return len(view.shape(0)) == IMAGE_AXES and set(windows.dilations) == {1}


def _average(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Spread by a transposed convolution, each channel by itself, what each window's count divides."""
    upstream = gradients[0]
    windows, channels = pool_windows(view), view.shape(0)[1]
    counts_pads = bool(view.integer("count_include_pad", 0))
    if _in_blocks(view, windows) and not (counts_pads and windows.pads != windows.pads_given):
        attributes = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads}
        shape = view.shape(0)
        return [tape("AveragePoolGradient", upstream, **attributes, count_include_pad=int(counts_pads), shape=shape)]
    ones = tape.floats(np.ones((channels, 1, *windows.kernel)))
    counts = _counts(windows, view.shape(0)[2:], with_pads=counts_pads)
    shares = tape("Mul", upstream, tape.floats(1 / counts))
    return [_spread(view, tape, shares, ones, windows)]


def _spread(view: NodeView, tape: Tape, shares: str, ones: str, windows: Windows) -> str:
    axes, shape = len(windows.kernel), view.shape(0)
    reach = [(size - 1) * step + 1 for size, step in zip(windows.kernel, windows.dilations, strict=True)]
    whole = [
        (count - 1) * step + length for count, step, length in zip(windows.size, windows.strides, reach, strict=True)
    ]
    before = windows.pads[:axes]
    # Windows may end before the image does, and reach beyond it where ceil_mode lets them.
    after = [total - pad - size for total, pad, size in zip(whole, before, shape[2:], strict=True)]
    return tape(
        "ConvTranspose",
        shares,
        ones,
        group=shape[1],
        strides=windows.strides,
        dilations=windows.dilations,
        pads=(*before, *(max(0, end) for end in after)),
        output_padding=tuple(max(0, -end) for end in after),
    )


def _counts(
    windows: Windows, image: Sequence[int], *, with_pads: bool
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return by how much each window's sum is divided."""
    axes = len(windows.kernel)
    counts = np.ones((1,) * axes)
    for axis in range(axes):
        begins = np.arange(windows.size[axis]) * windows.strides[axis] - windows.pads[axis]
        taps = begins[:, None] + np.arange(windows.kernel[axis]) * windows.dilations[axis]
        low, high = (
            (-windows.pads_given[axis], image[axis] + windows.pads_given[axis + axes])
            if with_pads
            else (0, image[axis])
        )
        inside = ((taps >= low) & (taps < high)).sum(axis=1)
        counts = counts * inside.reshape([-1 if at == axis else 1 for at in range(axes)])
    return counts


def _max(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Add each gradient where its window's first maximum stood."""
    upstream = gradients[0]
    if view.integer("storage_order", 0):
        view.fail("counts places column by column, which has no gradient in the engine")
    shape, windows = view.shape(0), pool_windows(view)
    if _in_blocks(view, windows):
        attributes = {"kernel": windows.kernel, "strides": windows.strides, "pads": windows.pads}
        return [tape("MaxPoolGradient", view.node.inputs[0], upstream, **attributes)]
    _, places = tape.several("MaxPool", view.node.inputs[0], made=2, **view.node.attributes)
    nothing = tape("Expand", tape.floats(0), tape.ints([math.prod(shape)]))
    flat_places, flat_upstream = tape.reshape(places, (-1,)), tape.reshape(upstream, (-1,))
    spread = tape("ScatterElements", nothing, flat_places, flat_upstream, axis=0, reduction="add")
    return [tape.reshape(spread, shape)]


def _global_average(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    images, channels, *pixels = view.shape(0)
    image = (images, channels, math.prod(pixels[:-1]), pixels[-1])
    made = tape.reshape(gradients[0], (images, channels, 1, 1))
    return [tape.reshape(tape("GlobalAveragePoolGradient", made, shape=image), view.shape(0))]


def _global_max(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Share the gradient between all pixels that are equal to the maximum."""
    upstream = gradients[0]
    is_one = tape("Equal", view.node.inputs[0], view.node.outputs[0])
    ones = tape("Where", is_one, tape.floats(1), tape.floats(0))
    count = tape("ReduceSum", ones, tape.ints(range(2, len(view.shape(0)))), keepdims=1)
    return [tape("Mul", ones, tape("Div", upstream, count))]


GRADIENTS: dict[str, Gradient] = {
    "AveragePool": _average,
    "GlobalAveragePool": _global_average,
    "GlobalMaxPool": _global_max,
    "MaxPool": _max,
}
"""Operator → rule."""
