"""Windows that slide over an image of any number of axes: padding rules and output sizes of convolution and pooling.

Source: https://onnx.ai/onnx/operators (Conv, MaxPool, AveragePool).
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from powerlab.engine.ops.view import NodeView

MAX_STEP = 65536
"""The largest kernel, stride, padding or dilation: beyond any image, and small enough for 32-bit arithmetic."""


_AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


class Windows(Struct, frozen=True, gc=False):
    """One number an axis of the image; ``pads`` are those before all axes, then those behind; ``size`` counts windows.

    With ``ceil_mode`` resolved, ``pads`` reach as far as the last window does; ``pads_given`` are the file's own.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    size: tuple[int, ...]
    pads_given: tuple[int, ...]

    def along(self, axes: tuple[int, ...]) -> Windows:
        """Return the windows along some axes of the image alone, in the order given."""
        count = len(self.kernel)
        both = (*axes, *(axis + count for axis in axes))
        return Windows(
            tuple(self.kernel[axis] for axis in axes),
            tuple(self.strides[axis] for axis in axes),
            tuple(self.pads[axis] for axis in both),
            tuple(self.dilations[axis] for axis in axes),
            tuple(self.size[axis] for axis in axes),
            tuple(self.pads_given[axis] for axis in both),
        )

    def with_rows(self) -> Windows:
        """Return windows over a row of pixels as windows over an image of one row."""
        before, after = self.pads
        given_before, given_after = self.pads_given
        return Windows(
            (1, *self.kernel),
            (1, *self.strides),
            (0, before, 0, after),
            (1, *self.dilations),
            (1, *self.size),
            (0, given_before, 0, given_after),
        )


def steps(view: NodeView, name: str, values: tuple[int, ...], count: int, low: int) -> tuple[int, ...]:
    """Return ``values``, which the node calls ``name``, where there are ``count`` of them in their range."""
    if len(values) != count or min(values, default=low) < low or max(values, default=low) > MAX_STEP:
        view.fail(f"has {name} {values[:8]}; the engine takes {count} values from {low} to {MAX_STEP}, for its image")
    return values


def auto_pad(view: NodeView) -> str:
    """Return who decides the pads of a node: itself (``NOTSET``), or a rule."""
    rule = view.text("auto_pad", "NOTSET")
    if rule not in _AUTO_PADS:
        view.fail(f"has auto_pad {rule[:20]!r}; known are {', '.join(_AUTO_PADS[:-1])} and {_AUTO_PADS[-1]}")
    return rule


def same_pads(total: int, rule: str) -> tuple[int, int]:
    """Return how much of ``total`` padding stands before an axis and behind it, for SAME_UPPER and SAME_LOWER."""
    before = total // 2 if rule == "SAME_UPPER" else total - total // 2
    return before, total - before


def resolve(view: NodeView, kernel: tuple[int, ...], image: tuple[int, ...]) -> Windows:
    """Return the windows of a node over an image, the sizes of whose axes are given.

    Raises:
        PowerlabError: an attribute has a wrong length or range, or no window fits.
    """
    axes = len(image)
    ones = (1,) * axes
    steps(view, "kernel_shape", kernel, axes, 1)
    strides = steps(view, "strides", view.integers("strides", ones), axes, 1)
    dilations = steps(view, "dilations", view.integers("dilations", ones), axes, 1)
    given = steps(view, "pads", view.integers("pads", (0,) * (2 * axes)), 2 * axes, 0)
    rounds_up = view.integer("ceil_mode", 0) == 1
    try:
        return _windows(image, kernel, (strides, dilations, given), auto_pad(view), rounds_up)
    except ValueError as error:
        view.fail(str(error))


@lru_cache(maxsize=256)
def _windows(
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    moves: tuple[tuple[int, ...], ...],
    rule: str,
    rounds_up: bool,
) -> Windows:
    """Return the windows of checked attributes: networks repeat their layers, and each is looked at several times.

    Args:
        image: the sizes of its axes.
        kernel: one number an axis, as the next.
        moves: strides, dilations and pads.
        rule: who decides the pads.
        rounds_up: whether the last window may reach past the image.

    Raises:
        ValueError: no window fits.
    """
    axes = len(image)
    strides, dilations, given = moves
    begin, end, requested_end, size = [], [], [], []
    for axis in range(axes):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        before, after = given[axis], given[axis + axes]
        if rule in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-image[axis] // strides[axis])
            before, after = same_pads(max((count - 1) * strides[axis] + reach - image[axis], 0), rule)
        elif rule == "VALID":
            before = after = 0
        room = image[axis] + before + after - reach
        if room < 0:
            padded = image[axis] + before + after
            raise ValueError(f"has windows of {reach} pixels, larger than its padded image of {padded}")
        count = room // strides[axis] + 1
        if rounds_up and rule == "NOTSET":
            count = -(-room // strides[axis]) + 1
            if (count - 1) * strides[axis] >= image[axis] + before:  # the last window must start on the image
                count -= 1
        requested_end.append(after)
        begin.append(before)
        end.append(max(after, (count - 1) * strides[axis] + reach - image[axis] - before))
        size.append(count)
    return Windows(kernel, strides, (*begin, *end), dilations, tuple(size), (*begin, *requested_end))


class PlanesSeen(Struct, frozen=True):
    """Windows over a volume that follow on each other and see as many planes with the same taps.

    Attributes:
        first: the first of these windows.
        count: of them.
        taps: of the kernel's depth, that meet planes of the volume.
        plane: the first that the first window sees.
    """

    first: int
    count: int
    taps: range
    plane: int


def planes_seen(planes: int, windows: int, taps: int, stride: int, before: int) -> list[PlanesSeen]:
    """Return the windows along a volume's depth, without dilation, by which of their taps meet its planes.

    Args:
        planes: of the volume.
        windows: along its depth.
        taps: of the kernel along its depth.
        stride: from window to window.
        before: planes of padding before the volume.
    """
    found: list[PlanesSeen] = []
    for window in range(windows):
        start = window * stride - before
        seen = range(max(0, -start), min(taps, planes - start))
        if found and found[-1].taps == seen:
            found[-1] = replace(found[-1], count=found[-1].count + 1)
        else:
            found.append(PlanesSeen(window, 1, seen, start + seen.start))
    return found
