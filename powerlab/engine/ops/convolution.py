"""Conv and ConvTranspose, over images of any number of axes."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.lib.stride_tricks import sliding_window_view

from powerlab.engine.ir.graph import Array
from powerlab.engine.ops.base import Operator
from powerlab.engine.ops.view import FLOAT32, NodeView, Spec
from powerlab.engine.ops.windows import Windows, auto_pad, resolve, same_pads, steps


def image_shape(view: NodeView) -> tuple[int, ...]:
    """Return the shape of the first input: images, channels, and at least one axis of pixels."""
    shape = view.floats(0)
    if len(shape) < 3:
        view.fail(f"needs images, channels and pixels as its input, but it has the shape {shape}")
    return shape


def conv_windows(view: NodeView) -> Windows:
    """Return the windows of a Conv node after checking that image, weight, bias and group fit together."""
    batch_channels, weight = image_shape(view), view.floats(1)
    if len(weight) != len(batch_channels):
        view.fail(f"has an input of the shape {batch_channels} and a weight of the shape {weight}, which do not fit")
    group = view.integer("group", 1)
    channels, outputs = batch_channels[1], weight[0]
    if group < 1 or channels != weight[1] * group or outputs % group or outputs == 0:
        view.fail(
            f"has an input of {channels} channels, a weight of shape {weight} and group {group}, which do not fit"
        )
    if view.has(2) and view.floats(2) != (outputs,):
        view.fail(f"has a bias of shape {view.shape(2)} for {outputs} output channels")
    kernel = weight[2:]
    if view.integers("kernel_shape", kernel) != kernel:
        view.fail(f"has kernel_shape {view.integers('kernel_shape', kernel)[:8]}, but its weight is {kernel}")
    return resolve(view, kernel, batch_channels[2:])


def _conv(view: NodeView) -> Spec:
    size = conv_windows(view).size
    return (view.shape(0)[0], view.shape(1)[0], *size), FLOAT32


class Transposed(Struct, frozen=True):
    """How a ConvTranspose spreads its input, one number an axis; ``pads`` are what is cut off before its result."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    size: tuple[int, ...]


def transposed_windows(view: NodeView) -> Transposed:
    """Return the sizes of a ConvTranspose after checking that image, weight, bias and group fit together.

    Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html
    """
    shape, weight, group = image_shape(view), view.floats(1), view.integer("group", 1)
    channels, image = shape[1], shape[2:]
    axes = len(image)
    if len(weight) != axes + 2 or group < 1 or channels != weight[0] or channels % group or weight[1] == 0:
        view.fail(f"has an input of the shape {shape}, a weight of the shape {weight} and group {group}")
    outputs = weight[1] * group
    if view.has(2) and view.floats(2) != (outputs,):
        view.fail(f"has a bias of shape {view.shape(2)} for {outputs} output channels")
    kernel = steps(view, "kernel_shape", weight[2:], axes, 1)
    if view.integers("kernel_shape", kernel) != kernel:
        view.fail(f"has kernel_shape {view.integers('kernel_shape', kernel)[:8]}, but its weight is {kernel}")
    strides = steps(view, "strides", view.integers("strides", (1,) * axes), axes, 1)
    dilations = steps(view, "dilations", view.integers("dilations", (1,) * axes), axes, 1)
    given = steps(view, "pads", view.integers("pads", (0,) * (2 * axes)), 2 * axes, 0)
    more = steps(view, "output_padding", view.integers("output_padding", (0,) * axes), axes, 0)
    rule = auto_pad(view)
    wanted = view.integers("output_shape", ())[-axes:]
    if rule.startswith("SAME") and not wanted:
        wanted = tuple(length * stride for length, stride in zip(image, strides, strict=True))
    if wanted:
        steps(view, "output_shape", wanted, axes, 1)
    pads, size = [], []
    for axis in range(axes):
        whole = strides[axis] * (image[axis] - 1) + more[axis] + (kernel[axis] - 1) * dilations[axis] + 1
        before, after = (0, 0) if rule == "VALID" else (given[axis], given[axis + axes])
        if wanted:
            before, after = same_pads(max(whole - wanted[axis], 0), rule)
        pads.append(before)
        size.append(wanted[axis] if wanted else whole - before - after)
    if min(size) < 1:
        view.fail(f"cuts its pads {given[:8]} off an image that has no more pixels")
    return Transposed(kernel, strides, dilations, tuple(pads), tuple(size))


def _conv_transpose(view: NodeView) -> Spec:
    size = transposed_windows(view).size
    return (view.shape(0)[0], view.shape(1)[1] * view.integer("group", 1), *size), FLOAT32


_LARGE_PRODUCTS = 2**24
"""From so many multiplications on BLAS is worth its threads, which go on spinning for a tenth of a second."""


def _convolved(view: NodeView) -> Array:
    """Return the value of a Conv of constants, such as what exporters make of embeddings of positions."""
    windows, group = conv_windows(view), view.integer("group", 1)
    x, weight = view.value(0), view.value(1)
    axes = len(windows.kernel)
    pads = zip(windows.pads[:axes], windows.pads[axes:], strict=True)
    padded = np.pad(x, ((0, 0), (0, 0), *pads))
    reach = [(taps - 1) * apart + 1 for taps, apart in zip(windows.kernel, windows.dilations, strict=True)]
    image, taps = range(2, 2 + axes), range(2 + axes, 2 + 2 * axes)
    seen = sliding_window_view(padded, reach, axis=tuple(image))
    every = [slice(None, None, step) for step in (*windows.strides, *windows.dilations)]
    seen = seen[(slice(None), slice(None), *every)]
    large = math.prod(seen.shape) * (weight.shape[0] // group) > _LARGE_PRODUCTS

    def summed(some: Array, kernels: Array) -> Array:
        if large:
            return np.moveaxis(np.tensordot(some, kernels, axes=((1, *taps), (1, *image))), -1, 1)
        outputs = 2 + 2 * axes
        made: Array = np.einsum(some, range(outputs), kernels, (outputs, 1, *taps), (0, outputs, *image))
        return made

    parts = [summed(*both) for both in zip(np.split(seen, group, axis=1), np.split(weight, group), strict=True)]
    made = np.concatenate(parts, axis=1)
    return made + view.value(2).reshape(-1, *(1,) * axes) if view.has(2) else made


CONV = Operator(_conv, _convolved)
CONV_TRANSPOSE = Operator(_conv_transpose)
