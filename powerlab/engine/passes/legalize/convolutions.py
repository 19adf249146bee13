"""Conv becomes FusedConv with explicit padding; zeros that a Pad puts around its image become padding too.

A convolution over a row of pixels is one over an image of one row. A transposed one of stride 1 is a convolution with
its weights turned round; others become FusedConvTranspose, their weights in the order of FusedConv's. Images of three
axes, and weights that are computed while the network runs, go to general kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from powerlab.engine.ir.constants import derived
from powerlab.engine.ir.graph import IMAGE_AXES, VOLUME_AXES, Array, Graph, Node
from powerlab.engine.ops.activation import NO_CLAMP
from powerlab.engine.ops.convolution import conv_windows, image_shape, transposed_windows
from powerlab.engine.ops.moving import zeros_around_images
from powerlab.engine.ops.view import NodeView
from powerlab.engine.ops.windows import Windows
from powerlab.engine.passes.legalize.general_nodes import as_volume, from_volume, general, numbers
from powerlab.engine.passes.legalize.views import view_node
from powerlab.engine.passes.legalize.volumes import as_images, transposed_as_images
from powerlab.engine.passes.rewriting import Rewriter, rewrite_nodes


def _conv(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node = view.node
    windows, shape = conv_windows(view), image_shape(view)
    if _is_moving(view):
        return _moving(view, rewriter, "ComputedConv", Steps(windows.strides, windows.pads_given, windows.dilations))
    if _is_general(view):
        constant = all(view.values[index] is not None for index in (1, 2) if view.has(index))
        if constant and view.values[0] is None:
            if (over_images := as_images(view, windows, rewriter)) is not None:
                return over_images
            if view.integer("group", 1) == 1:
                return [_over_volume(view, windows, rewriter)]
        steps = Steps(windows.strides, windows.pads_given, windows.dilations)
        return _by_general_kernel(view, rewriter, "conv_planes_f32", steps)
    source, pads = _without_pad(node.inputs[0], windows.pads_given, rewriter)
    if len(shape) < IMAGE_AXES:
        windows, pads = windows.with_rows(), (0, pads[0], 0, pads[1])
    attributes = {
        "strides": windows.strides,
        "pads": pads,
        "dilations": windows.dilations,
        "group": view.integer("group", 1),
        "clamp": NO_CLAMP,
    }
    weight = _with_rows(node.inputs[1], rewriter) if len(shape) < IMAGE_AXES else node.inputs[1]
    operands = (weight, node.input(2), "")
    if len(shape) == IMAGE_AXES:
        return [Node("FusedConv", node.name, (source, *operands), node.outputs, attributes)]
    return _of_row(view, rewriter, source, Node("FusedConv", node.name, operands, node.outputs, attributes))


class Steps(NamedTuple):
    """How a window moves: one number an axis; of ``pads``, those before the image come first."""

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]

    def numbers(self) -> list[int]:
        """Return them as kernels over three axes want them."""
        fill = VOLUME_AXES - 2 - len(self.strides)
        before = self.pads[: len(self.strides)]
        return [*(1,) * fill, *self.strides, *(0,) * fill, *before, *(1,) * fill, *self.dilations]


def _is_general(view: NodeView) -> bool:
    """Say whether the kernels in blocks cannot compute a convolution."""
    if len(view.shape(0)) > VOLUME_AXES:
        view.fail(f"convolves images of {len(view.shape(0)) - 2} axes; the engine takes up to three")
    computed = any(view.has(index) and view.values[index] is None for index in (1, 2))
    return len(view.shape(0)) > IMAGE_AXES or computed or view.values[0] is not None


def _is_moving(view: NodeView) -> bool:
    """Say whether a convolution of computed images has computed weights that kernels in blocks take."""
    return view.values[0] is None and view.values[1] is None and len(view.shape(0)) <= IMAGE_AXES


def _moving(view: NodeView, rewriter: Rewriter, operator: str, steps: Steps) -> Sequence[Node]:
    """Return a convolution whose weights change; of a row of pixels as one of an image of one row."""
    node, output, axes = view.node, view.node.outputs[0], len(steps.strides)
    fill = IMAGE_AXES - 2 - axes
    before, after = steps.pads[:axes], steps.pads[axes:]
    attributes: dict[str, object] = {
        "strides": (*(1,) * fill, *steps.strides),
        "pads": (*(0,) * fill, *before, *(0,) * (fill if after else 0), *after),
        "dilations": (*(1,) * fill, *steps.dilations),
        "group": view.integer("group", 1),
    }
    if not fill:
        return [Node(operator, node.name, node.inputs, (output,), attributes)]

    def image(name: str) -> str:
        shape = rewriter.shape(name)
        return rewriter.tensor(f"{name}.image", (*shape[:2], 1, *shape[2:]))

    x, weights, made = (image(name) for name in (*node.inputs[:2], output))
    return [
        view_node(f"{node.name}.image", node.inputs[0], x),
        view_node(f"{node.name}.weights", node.inputs[1], weights),
        Node(operator, node.name, (x, weights, *node.inputs[2:]), (made,), attributes),
        view_node(f"{node.name}.shape", made, output),
    ]


def _over_volume(view: NodeView, windows: Windows, rewriter: Rewriter) -> Node:
    """Return a convolution over volumes of all channels with all, its weights known."""
    node = view.node
    source, pads = _without_pad(node.inputs[0], windows.pads_given, rewriter)
    attributes = {**Steps(windows.strides, pads, windows.dilations)._asdict(), "clamp": NO_CLAMP}
    return Node("FusedVolumeConv", node.name, (source, node.inputs[1], node.input(2), ""), node.outputs, attributes)


def _by_general_kernel(view: NodeView, rewriter: Rewriter, kernel: str, steps: Steps) -> Sequence[Node]:
    node = view.node
    before: list[Node] = []
    operands = [as_volume(rewriter, name, before) for name in node.inputs[:2]]
    described = numbers(rewriter, node, view.integer("group", 1), *steps.numbers())
    made, after = from_volume(rewriter, node.outputs[0])
    inputs = (*operands, *filter(None, [node.input(2)]), described)
    return [*before, general(node.name, kernel, inputs, made), *after]


def _without_pad(source: str, pads: tuple[int, ...], rewriter: Rewriter) -> tuple[str, tuple[int, ...]]:
    """Return the tensor before a Pad of images, and pads before all axes and behind them with what the Pad adds."""
    pad = rewriter.producer(source)
    if pad is not None and pad.op_type == "Pad":
        added = zeros_around_images(NodeView.of(rewriter.graph, pad))
        if added is not None:
            return pad.inputs[0], tuple(own + more for own, more in zip(pads, added, strict=True))
    return source, pads


def _with_rows(weight: str, rewriter: Rewriter) -> str:
    """Return weights for a row of pixels as those for an image of one row."""
    outputs, inputs, columns = rewriter.kept(weight).shape
    wide = (outputs, inputs, 1, columns)
    return rewriter.constant(f"{weight}.rows", derived(rewriter.kept(weight), wide, partial(np.reshape, shape=wide)))


def _of_row(view: NodeView, rewriter: Rewriter, source: str, over_image: Node) -> Sequence[Node]:
    """Return a convolution of a row of pixels, seen as an image of one row.

    Args:
        view: the convolution.
        rewriter: gets the images.
        source: the row.
        over_image: the convolution of the image, with its inputs but that.
    """
    node, output = view.node, view.node.outputs[0]
    images, channels, columns = rewriter.shape(source)
    image = rewriter.tensor(f"{output}.image", (images, channels, 1, columns))
    _, outputs, made_columns = rewriter.graph.shape(output)
    made = rewriter.tensor(f"{output}.row", (images, outputs, 1, made_columns))
    return [
        view_node(f"{node.name}.image", source, image),
        replace(over_image, inputs=(image, *over_image.inputs), outputs=(made,)),
        view_node(f"{node.name}.shape", made, output),
    ]


def _transposed(view: NodeView, rewriter: Rewriter) -> Sequence[Node]:
    node, windows, shape = view.node, transposed_windows(view), image_shape(view)
    if _is_moving(view):
        return _moving(view, rewriter, "ComputedConvTranspose", Steps(windows.strides, windows.pads, windows.dilations))
    if _is_general(view):
        known = all(view.values[index] is not None for index in (1, 2) if view.has(index)) and view.values[0] is None
        if known and view.integer("group", 1) == 1 and (found := transposed_as_images(view, windows, rewriter)):
            return found
        steps = Steps(windows.strides, windows.pads, windows.dilations)
        return _by_general_kernel(view, rewriter, "conv_transpose_strided_f32", steps)
    fill = (1,) * (IMAGE_AXES - len(shape))
    kernel, strides, dilations = (*fill, *windows.kernel), (*fill, *windows.strides), (*fill, *windows.dilations)
    image, size = (*fill, *shape[2:]), (*fill, *windows.size)
    cut = (*(0 for _ in fill), *windows.pads)
    group, outputs = view.integer("group", 1), rewriter.graph.shape(node.outputs[0])[1]
    inner = [(length - 1) * step for length, step in zip(kernel, dilations, strict=True)]
    before = tuple(reach - pad for reach, pad in zip(inner, cut, strict=True))
    after = tuple(
        out - 1 + reach - pad - (length - 1) for out, reach, pad, length in zip(size, inner, before, image, strict=True)
    )
    convolves = strides == (1, 1) and min(*before, *after) >= 0
    turned = partial(_in_usual_order, group=group, kernel=kernel, flip=convolves)
    ordered = (outputs, shape[1] // group, *kernel)
    weight = rewriter.constant(f"{node.outputs[0]}.weight", derived(view.known(1), ordered, turned))
    operands = (weight, node.input(2), "")
    attributes = {"strides": strides, "dilations": dilations, "group": group, "clamp": NO_CLAMP}
    operator = "FusedConv" if convolves else "FusedConvTranspose"
    attributes["pads"] = (*before, *after) if convolves else cut
    if len(shape) == IMAGE_AXES:
        return [Node(operator, node.name, (node.inputs[0], *operands), node.outputs, attributes)]
    return _of_row(view, rewriter, node.inputs[0], Node(operator, node.name, operands, node.outputs, attributes))


def _in_usual_order(weights: Array, *, group: int, kernel: tuple[int, ...], flip: bool) -> Array:
    """Return weights (C, O / groups, ...) as (O, C / groups, kh, kw), each kernel turned round where ``flip`` says."""
    inputs, outputs = weights.shape[0] // group, weights.shape[1]
    apart = weights.reshape(group, inputs, outputs, *kernel).transpose(0, 2, 1, 3, 4)
    ordered = apart.reshape(group * outputs, inputs, *kernel)
    return np.ascontiguousarray(ordered[:, :, ::-1, ::-1] if flip else ordered)


def lower_convolutions(graph: Graph) -> Graph:
    """Return the graph with FusedConv and FusedConvTranspose as its only convolutions."""
    return rewrite_nodes(graph, {"Conv": _conv, "ConvTranspose": _transposed})
