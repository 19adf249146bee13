"""Operators that move numbers and compute nothing."""

from __future__ import annotations

import math

from msgspec.structs import replace

from powerlab.domain.errors import PowerlabError
from powerlab.engine.codegen.attributes import integers, number
from powerlab.engine.codegen.boxes import assigned_box, is_all
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.strided import copy
from powerlab.engine.ir.graph import IMAGE_AXES, Node
from powerlab.engine.program.storage import Storage


def lower_reshape(builder: Builder, node: Node) -> None:
    """Lower a Reshape: the same memory."""
    name, output = node.inputs[0], node.outputs[0]
    before, after = builder.image(name), builder.image(output)
    alike = (before.images, before.channels, before.pixels) == (after.images, after.channels, after.pixels)
    if alike and builder.in_blocks(name):
        builder.put_blocks(output, builder.blocks(name))
    else:
        builder.put_rows(output, builder.rows(name))


def lower_transpose(builder: Builder, node: Node) -> None:
    """Lower a Transpose."""
    x = builder.operand(node.inputs[0]).permuted(integers(node, "perm"))
    copy(builder, node, builder.new_operand(node.outputs[0]), x)


def lower_slice(builder: Builder, node: Node) -> None:
    """Lower a Slice: channels in blocks stay there."""
    name, output = node.inputs[0], node.outputs[0]
    before, after = builder.graph.shape(name), builder.graph.shape(output)
    starts, steps = integers(node, "starts"), integers(node, "steps")
    channels = len(before) >= IMAGE_AXES and before[0] == after[0] and before[2:] == after[2:] and set(steps) == {1}
    if channels and builder.in_blocks(name):
        source = builder.blocks(name)
        filled = -after[1] % 4
        _move_channels(
            builder, node, (output, builder.new_blocks(output)), (name, source), (starts[1], 0, after[1], filled)
        )
        return
    x, out = builder.operand(name), builder.new_operand(output)
    for axis, (start, step) in enumerate(zip(starts, steps, strict=True)):
        x = x.sliced(axis, start, after[axis], step)
    copy(builder, node, out, x)


def lower_concat(builder: Builder, node: Node) -> None:
    """Lower a Concat: images in blocks are joined there, unless they were computed in their places."""
    output, shape = node.outputs[0], builder.graph.shape(node.outputs[0])
    axis = int(number(node, "axis")) % len(shape)
    if axis == 1 and len(shape) >= IMAGE_AXES and any(builder.in_blocks(name) for name in node.inputs):
        sources = [builder.blocks(name) for name in node.inputs]
        out, first = builder.new_blocks(output), 0
        for name, source in zip(node.inputs, sources, strict=True):
            count = builder.image(name).channels
            filled = -shape[1] % 4 if first + count == shape[1] else 0
            if not builder.is_joined(name, output, first):
                _move_channels(builder, node, (output, out), (name, source), (0, first, count, filled))
            first += count
        return
    whole, at = builder.new_operand(output), 0
    for name in node.inputs:
        x = builder.operand(name)
        copy(builder, node, whole.sliced(axis, at, x.sizes[axis]), x)
        at += x.sizes[axis]


def lower_expand(builder: Builder, node: Node) -> None:
    """Lower an Expand."""
    x = builder.operand(node.inputs[0])
    copy(builder, node, builder.new_operand(node.outputs[0]), x)


def lower_tile(builder: Builder, node: Node) -> None:
    """Lower a Tile: each axis is two, of which the outer one repeats."""
    x, out = builder.operand(node.inputs[0]), builder.new_operand(node.outputs[0])
    for axis, count in reversed(list(enumerate(integers(node, "repeats")))):
        size = x.sizes[axis]
        out, x = out.split(axis, (count, size)), x.split(axis, (1, size))
    copy(builder, node, out, x)


def lower_pad(builder: Builder, node: Node) -> None:
    """Lower a Pad: fill the whole, then put the tensor into it."""
    x, filling = builder.operand(node.inputs[0]), builder.operand(node.inputs[1])
    out = builder.new_operand(node.outputs[0])
    copy(builder, node, out, filling.first())
    for axis, before in enumerate(integers(node, "before")):
        out = out.sliced(axis, before, x.sizes[axis])
    copy(builder, node, out, x)


def lower_gather(builder: Builder, node: Node) -> None:
    """Lower a Gather of places that the model knows, or that a run gives."""
    axis, shape = int(number(node, "axis")), builder.graph.shape(node.inputs[0])
    outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    picked = builder.graph.tensors[node.inputs[1]].elements
    places, x = builder.places(node.inputs[1], size), builder.rows(node.inputs[0])
    _gather(builder, node, (x, places), (outer, size, picked, inner), each=False)


def lower_gather_elements(builder: Builder, node: Node) -> None:
    """Lower a GatherElements of places that the model knows, that are computed, or that a run gives.

    Raises:
        PowerlabError: there are fewer places along some other axis than numbers.
    """
    axis, shape = int(number(node, "axis")), builder.graph.shape(node.inputs[0])
    picked = builder.graph.shape(node.inputs[1])
    if (*shape[:axis], *shape[axis + 1 :]) != (*picked[:axis], *picked[axis + 1 :]):
        raise PowerlabError(
            f"{node} picks from {list(shape)} at {list(picked)}, and on a GPU the engine wants places for all of it "
            "but along one axis; use the device cpu."
        )
    outer, size, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    sources = builder.rows(node.inputs[0]), builder.places(node.inputs[1], size)
    _gather(builder, node, sources, (outer, size, picked[axis], inner), each=True)


def lower_scatter_nd(builder: Builder, node: Node) -> None:
    """Lower a ScatterND that assigns to a box: ``x[:, 1:] = y``.

    Raises:
        PowerlabError: it assigns to places that are no box, or only a run gives, or it adds.
    """
    x = builder.operand(node.inputs[0])
    box = assigned_box(builder.graph, node, x)
    if box is None:
        raise PowerlabError(
            f"{node} puts numbers where no constant box is, which the engine does not on a GPU yet; use the device cpu."
        )
    out = builder.new_operand(node.outputs[0])
    if not is_all(box, x):
        copy(builder, node, out, x)
    target = replace(box, storage=out.storage, offset=box.offset - x.offset + out.offset)
    copy(builder, node, target, builder.operand(node.inputs[2]))


def _gather(
    builder: Builder, node: Node, sources: tuple[Storage, Storage], sizes: tuple[int, int, int, int], *, each: bool
) -> None:
    """Append a dispatch that picks from numbers at places; sizes are outer, of the axis, picked, and inner ones."""
    outer, _, picked, inner = sizes
    buffers = (builder.new_rows(node.outputs[0]), *sources)
    builder.emit_flat("gather", node, buffers, outer * picked * inner, constants=(int(each),), push=sizes)


def _move_channels(
    builder: Builder,
    node: Node,
    made: tuple[str, Storage],
    taken: tuple[str, Storage],
    moved: tuple[int, int, int, int],
) -> None:
    """Append a move of channels: from which on, to which on, how many, and how many zeros behind them."""
    (output, out), (name, source), (first, to, count, filled) = made, taken, moved
    x, whole = builder.image(name), builder.image(output)
    if first % 4 == 0 and to % 4 == 0 and (count + filled) % 4 == 0 and (filled == 0 or first + count == x.channels):
        blocks = (first // 4, to // 4, (count + filled) // 4)
        push = (x.images, x.pixels, x.blocks, whole.blocks, *blocks)
        builder.emit_flat("blocks", node, (out, source), x.images * blocks[-1] * x.pixels, push=push)
        return
    sizes = (x.images, x.pixels, x.blocks, whole.blocks, first, to, count, filled)
    builder.emit_flat("channels", node, (out, source), x.images * (count + filled) * x.pixels, push=sizes)
