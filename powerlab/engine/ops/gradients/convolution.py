"""Gradients of Conv and ConvTranspose: each is the other's for its input, and a convolution of both for weights.

Source: V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning,
https://arxiv.org/abs/1603.07285, chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.engine.ir.graph import IMAGE_AXES
from powerlab.engine.ops.convolution import conv_windows, transposed_windows
from powerlab.engine.ops.gradients.base import Gradient, Tape
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows

Steps = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def _conv(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    upstream = gradients[0]
    windows, group = conv_windows(view), view.integer("group", 1)
    source, weight = view.node.inputs[:2]
    found = ["", "", ""]
    if tape.wants(source):
        found[0] = _of_input(view, tape, upstream, windows, group)
    if tape.wants(weight):
        found[1] = _of_weight(
            tape, (source, upstream), (windows.strides, windows.dilations, windows.pads_given), group, view.shape(1)[2:]
        )
    if tape.wants(view.node.input(2)):
        found[2] = tape("ChannelSums", upstream)
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


def _of_weight(tape: Tape, pair: tuple[str, str], steps: Steps, group: int, kernel: tuple[int, ...]) -> str:
    """Return the gradient of weights: for images by an operator of its own; the arguments are those of volumes."""
    read, made = (tape.shape(name) for name in pair)
    fill = IMAGE_AXES - len(read)
    if fill < 0:
        return _of_volume_weight(tape, pair, steps, group, kernel)
    images = (tape.reshape(name, (*tape.shape(name)[:2], *(1,) * fill, *tape.shape(name)[2:])) for name in pair)
    strides, dilations, (*pads,) = steps
    axes = len(kernel)
    found = tape(
        "ConvWeightGradient",
        *images,
        group=group,
        strides=(*(1,) * fill, *strides),
        dilations=(*(1,) * fill, *dilations),
        pads=(*(0,) * fill, *pads[:axes], *(0,) * fill, *pads[axes:]),
        shape=(made[1], read[1] // group, *(1,) * fill, *kernel),
    )
    return tape.reshape(found, (made[1], read[1] // group, *kernel))


def _of_volume_weight(tape: Tape, pair: tuple[str, str], steps: Steps, group: int, kernel: tuple[int, ...]) -> str:
    """Convolve the larger image, its images as channels, with the smaller one, whose pixels are the taps.

    Strides become dilations and the reverse. Groups stay groups: images (channels of a group, groups * images, ...),
    weights (outputs, images, ...).

    Args:
        tape: takes the nodes.
        pair: what the convolution reads and the gradient of what it makes; of a transposed one the reverse.
        steps: strides, dilations and pads.
        group: groups of channels.
        kernel: taps along each axis.
    """
    strides, dilations, pads = steps
    images, channels, *image = tape.shape(pair[0])
    axes = range(2, 2 + len(image))
    apart = tape.reshape(pair[0], (images, group, channels // group, *image))
    turned = tape("Transpose", apart, perm=(2, 1, 0, *(axis + 1 for axis in axes)))
    source = tape.reshape(turned, (channels // group, group * images, *image))
    taps = tape("Transpose", pair[1], perm=(1, 0, *axes))
    found = tape("Conv", source, taps, group=group, strides=dilations, dilations=strides, pads=pads)
    if tape.shape(found)[2:] != kernel:  # the last windows left pixels over, which give taps that do not exist
        found = tape("Slice", found, tape.ints([0] * len(axes)), tape.ints(kernel), tape.ints(axes))
    return tape("Transpose", found, perm=(1, 0, *axes))


def _conv_transpose(view: NodeView, tape: Tape, gradients: tuple[str, ...]) -> Sequence[str]:
    """Let a convolution of the gradient give that of the input: it is what a transposed one transposes."""
    upstream, group, windows = gradients[0], view.integer("group", 1), transposed_windows(view)
    image, made = view.shape(0)[2:], tape.shape(upstream)[2:]
    after = []
    for axis, length in enumerate(image):
        reach = (windows.kernel[axis] - 1) * windows.dilations[axis] + 1
        after.append((length - 1) * windows.strides[axis] + reach - windows.pads[axis] - made[axis])
    if min(after) < 0:  # the output's padding, which no pixel of the input reached
        begins, ends = [0] * len(after), [size + min(0, more) for size, more in zip(made, after, strict=True)]
        upstream = tape("Slice", upstream, tape.ints(begins), tape.ints(ends), tape.ints(range(2, 2 + len(after))))
    pads = (*windows.pads, *(max(0, more) for more in after))
    source, weight = view.node.inputs[:2]
    found = ["", "", ""]
    steps = {"strides": windows.strides, "dilations": windows.dilations, "pads": pads}
    if tape.wants(source):
        found[0] = tape("Conv", upstream, weight, group=group, **steps)
    if tape.wants(weight):
        found[1] = _of_weight(
            tape, (upstream, source), (windows.strides, windows.dilations, pads), group, windows.kernel
        )
    if tape.wants(view.node.input(2)):
        found[2] = tape("ChannelSums", gradients[0])
    return found


GRADIENTS: dict[str, Gradient] = {"Conv": _conv, "ConvTranspose": _conv_transpose}
"""Operator → rule."""
