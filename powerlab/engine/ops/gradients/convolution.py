"""Gradients of Conv: a transposed convolution for its input, a convolution of its input for its weights.

Source: V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning,
https://arxiv.org/abs/1603.07285, chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ops.convolution import conv_windows
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows


def _conv(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    upstream = gradients[0]
    windows, group = conv_windows(view), view.integer("group", 1)
    source, weight = view.node.inputs[:2]
    found = ["", "", ""]
    if tape.wants(source):
        found[0] = _of_input(view, tape, upstream, windows, group)
    if tape.wants(weight):
        found[1] = _of_weight(view, tape, upstream, windows, group)
    if tape.wants(view.node.input(2)):
        axes = (axis for axis in range(len(view.shape(0))) if axis != 1)
        found[2] = tape("ReduceSum", upstream, tape.ints(axes), keepdims=0)
    return found


def _of_input(view: NodeView, tape: Tape, upstream: str, windows: Windows, group: int) -> str:
    """Spread each gradient over the taps that its window saw; pixels that no window saw are the output's padding."""
    axes = len(windows.kernel)
    left_over = []
    for axis, size in enumerate(view.shape(0)[2:]):
        seen = (
            (windows.size[axis] - 1) * windows.strides[axis] + (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        )
        left_over.append(size + windows.pads_given[axis] + windows.pads_given[axis + axes] - seen)
    return tape(
        "ConvTranspose",
        upstream,
        view.node.inputs[1],
        group=group,
        strides=windows.strides,
        dilations=windows.dilations,
        pads=windows.pads_given,
        output_padding=tuple(left_over),
    )


def _of_weight(view: NodeView, tape: Tape, upstream: str, windows: Windows, group: int) -> str:
    """Convolve the input, its images as channels, with the output's gradient, whose pixels are the taps.

    Strides become dilations and the reverse. Groups stay groups: input (channels of a group, groups * images, ...),
    weight (outputs, images, ...).
    """
    (images, channels, *image), kernel = view.shape(0), view.shape(1)[2:]
    axes = len(image)
    behind = tuple(range(3, 3 + axes))
    apart = tape.reshape(view.node.inputs[0], (images, group, channels // group, *image))
    source = tape.reshape(
        tape("Transpose", apart, perm=(2, 1, 0, *behind)), (channels // group, group * images, *image)
    )
    taps = tape("Transpose", upstream, perm=(1, 0, *range(2, 2 + axes)))
    found = tape(
        "Conv",
        source,
        taps,
        group=group,
        strides=windows.dilations,
        dilations=windows.strides,
        pads=windows.pads_given,
    )
    if tape.shape(found)[2:] != kernel:  # the last windows left pixels over, which give taps that do not exist
        ends, along = tape.ints(kernel), tape.ints(range(2, 2 + axes))
        found = tape("Slice", found, tape.ints([0] * axes), ends, along)
    return tape("Transpose", found, perm=(1, 0, *range(2, 2 + axes)))


GRADIENTS: dict[str, Gradient] = {"Conv": _conv}
"""Operator → rule."""
