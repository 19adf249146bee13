"""Convolutions over volumes that are convolutions over images, in another view.

Where windows neither overlap nor leave anything out, each is a pixel that has all its elements for channels, so the
convolution is one of 1 x 1. One along the first axis alone has columns, of which it sees as many as there are pixels in
a plane. Transposed, each pixel becomes a window: channels that are then put in their places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import Array, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.convolution import Transposed
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.rewriting import Rewriter

_AXES = 3
_ONE = (1,) * _AXES


def as_images(view: NodeView, windows: Windows, rewriter: Rewriter) -> Sequence[Node] | None:
    """Return what a convolution over volumes is over images; None where it is none."""
    group = view.integer("group", 1)
    images, channels, *size = view.shape(0)
    outputs, *made = rewriter.shape(view.node.outputs[0])[1:]
    plain = not any(windows.pads_given) and windows.dilations == _ONE
    if (
        group == 1
        and plain
        and windows.kernel == windows.strides
        and all(count * step == length for count, step, length in zip(made, windows.kernel, size, strict=True))
    ):
        inner = channels * math.prod(windows.kernel)
        before, source = _windows_as_channels(view, windows.kernel, made, rewriter)
        image = (images, inner, made[0] * made[1], made[2])
        return [*before, *_over_image(view, rewriter, source, (image, (outputs, inner, 1, 1)), _fields(1, 0, 1))]
    across = (windows.kernel, windows.strides, windows.dilations)
    if all(one[1:] == (1, 1) for one in across) and not any(windows.pads_given[at] for at in (1, 2, 4, 5)):
        image = (images, channels, size[0], size[1] * size[2])
        weight = (outputs, channels // group, windows.kernel[0], 1)
        fields = _fields(windows.strides[0], windows.pads_given[0], windows.dilations[0], windows.pads_given[3])
        return _over_image(view, rewriter, view.node.inputs[0], (image, weight), {**fields, "group": group})
    return None


def transposed_as_images(view: NodeView, windows: Transposed, rewriter: Rewriter) -> Sequence[Node] | None:
    """Return what a transposed convolution is over images where its windows do not overlap; None where they do."""
    name, output = view.node.name, view.node.outputs[0]
    images, channels, *size = view.shape(0)
    outputs, *made = rewriter.shape(output)[1:]
    exact = all(count == step * length for count, step, length in zip(made, windows.strides, size, strict=True))
    if not exact or windows.kernel != windows.strides or any(windows.pads) or windows.dilations != _ONE:
        return None
    window = math.prod(windows.kernel)
    image = rewriter.tensor(f"{output}.image", (images, channels, size[0] * size[1], size[2]))
    pixels = rewriter.tensor(f"{output}.pixels", (images, outputs * window, size[0] * size[1], size[2]))
    apart = rewriter.tensor(f"{output}.apart", (images, outputs, *windows.kernel, *size))
    order = (0, 1, 5, 2, 6, 3, 7, 4)
    placed = rewriter.tensor(f"{output}.placed", tuple(rewriter.shape(apart)[axis] for axis in order))
    turned = derived(view.known(1), (outputs * window, channels, 1, 1), _turned)
    weight, bias = rewriter.constant(f"{output}.weight", turned), ""
    if view.has(2):
        repeated = derived(view.known(2), (outputs * window,), partial(np.repeat, repeats=window))
        bias = rewriter.constant(f"{output}.bias", repeated)
    fields = {**_fields(1, 0, 1), "group": 1, "clamp": NO_CLAMP}
    return [
        view_node(f"{name}.image", view.node.inputs[0], image),
        Node("FusedConv", name, (image, weight, bias, ""), (pixels,), fields),
        view_node(f"{name}.apart", pixels, apart),
        Node("Transpose", f"{name}.placed", (apart,), (placed,), {"perm": order}),
        view_node(f"{name}.shape", placed, output),
    ]


def _windows_as_channels(
    view: NodeView, kernel: tuple[int, ...], made: Sequence[int], rewriter: Rewriter
) -> tuple[list[Node], str]:
    """Return nodes that put the elements of each window side by side, as channels, and what they make."""
    source, output = view.node.inputs[0], view.node.outputs[0]
    if kernel == _ONE:
        return [], source
    images, channels = view.shape(0)[:2]
    pairs = [size for pair in zip(made, kernel, strict=True) for size in pair]
    apart = rewriter.tensor(f"{output}.apart", (images, channels, *pairs))
    gathered = rewriter.tensor(f"{output}.windows", (images, channels, *kernel, *made))
    order = {"perm": (0, 1, 3, 5, 7, 2, 4, 6)}
    name = view.node.name
    moved = Node("Transpose", f"{name}.windows", (apart,), (gathered,), order)
    return [view_node(f"{name}.apart", source, apart), moved], gathered


def _over_image(
    view: NodeView,
    rewriter: Rewriter,
    source: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    fields: dict[str, object],
) -> list[Node]:
    """Return the convolution of ``source``, it and the weights seen in the shapes of an image and of its weights."""
    (image, weight), node, output = shapes, view.node, view.node.outputs[0]
    outputs, *made = rewriter.shape(output)[1:]
    seen = rewriter.tensor(f"{output}.image", image)
    columns = image[-1]  # no window crosses them
    result = rewriter.tensor(f"{output}.pixels", (image[0], outputs, math.prod(made) // columns, columns))
    reshaped = derived(view.known(1), weight, partial(np.reshape, shape=weight))
    kept = rewriter.constant(f"{output}.weight", reshaped)
    attributes = {"group": 1, **fields, "clamp": NO_CLAMP}
    return [
        view_node(f"{node.name}.image", source, seen),
        Node("FusedConv", node.name, (seen, kept, node.input(2), ""), (result,), attributes),
        view_node(f"{node.name}.shape", result, output),
    ]


def _fields(stride: int, before: int, dilation: int, after: int = 0) -> dict[str, object]:
    """Return how a window moves that is one column wide."""
    return {"strides": (stride, 1), "pads": (before, 0, after, 0), "dilations": (dilation, 1)}


def _turned(weights: Array) -> Array:
    """Return weights (C, O, ...) as (O ..., C, 1, 1)."""
    channels = weights.shape[0]
    return np.ascontiguousarray(weights.reshape(channels, -1).T).reshape(-1, channels, 1, 1)
