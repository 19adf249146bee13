"""Windows that slide over an image: padding rules and output sizes of convolution and pooling.

Source: https://onnx.ai/onnx/operators (Conv, MaxPool, AveragePool).
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.engine.operators.view import NodeView

MAX_STEP = 65536
"""The largest kernel, stride, padding or dilation: beyond any image, and small enough for 32-bit arithmetic."""


@dataclass(frozen=True, slots=True)
class Windows:
    """Sizes along height and width; ``pads`` are (top, left, bottom, right), ``size`` counts the windows.

    With ``ceil_mode`` resolved, ``pads`` reach as far as the last window does; ``pads_given`` are the file's own.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    size: tuple[int, int]
    pads_given: tuple[int, int, int, int]


def _steps(view: NodeView, name: str, values: tuple[int, ...], count: int, low: int) -> tuple[int, ...]:
    if len(values) != count or not all(low <= value <= MAX_STEP for value in values):
        view.fail(
            f"has {name} {values[:8]}; the engine takes {count} values from {low} to {MAX_STEP}, for images (NCHW)"
        )
    return values


def resolve(view: NodeView, kernel: tuple[int, ...], image: tuple[int, ...]) -> Windows:
    """Return the windows of a node over an image of ``image`` = (height, width).

    Raises:
        PowerlabError: an attribute has a wrong length or range, or no window fits.
    """
    _steps(view, "kernel_shape", kernel, 2, 1)
    strides = _steps(view, "strides", view.integers("strides", (1, 1)), 2, 1)
    dilations = _steps(view, "dilations", view.integers("dilations", (1, 1)), 2, 1)
    given = _steps(view, "pads", view.integers("pads", (0, 0, 0, 0)), 4, 0)
    rounds_up = view.integer("ceil_mode", 0) == 1
    auto_pad = view.text("auto_pad", "NOTSET")
    begin, end, asked, size = [], [], [], []
    for axis in range(2):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        before, after = given[axis], given[axis + 2]
        if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-image[axis] // strides[axis])
            total = max((count - 1) * strides[axis] + reach - image[axis], 0)
            before = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            after = total - before
        elif auto_pad == "VALID":
            before = after = 0
        elif auto_pad != "NOTSET":
            view.fail(f"has auto_pad {auto_pad[:20]!r}; known are NOTSET, SAME_UPPER, SAME_LOWER and VALID")
        room = image[axis] + before + after - reach
        if room < 0:
            view.fail(f"has windows of {reach} pixels, larger than its padded image of {image[axis] + before + after}")
        count = room // strides[axis] + 1
        if rounds_up and auto_pad == "NOTSET":
            count = -(-room // strides[axis]) + 1
            if (count - 1) * strides[axis] >= image[axis] + before:  # the last window must start on the image
                count -= 1
        asked.append(after)
        begin.append(before)
        end.append(max(after, (count - 1) * strides[axis] + reach - image[axis] - before))
        size.append(count)
    return Windows(
        (kernel[0], kernel[1]),
        (strides[0], strides[1]),
        (begin[0], begin[1], end[0], end[1]),
        (dilations[0], dilations[1]),
        (size[0], size[1]),
        (begin[0], begin[1], asked[0], asked[1]),
    )
