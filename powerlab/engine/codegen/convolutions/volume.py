"""Convolutions over volumes: planes follow on each other in blocks, so a kernel's planes are more channels of an image.

In blocks, the channels of a plane end where those of the next one begin. So an image that has the channels of as many
planes as the kernel is deep needs no copy: it is a view that begins at the first of them, and images overlap.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import asdict, replace

from powerlab.engine.codegen.attributes import clamp_fields, integers
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.direct_kernel import Direct, emit_direct
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import Halo, Layout, blocked, divide_up
from powerlab.engine.program.program import Floats, Tensor


def lower_conv_volume(builder: Builder, node: Node) -> None:
    """Lower a FusedVolumeConv, one image of the batch after the other."""
    width = builder.tier.vector_width
    images, channels, *size = builder.graph.shape(node.inputs[0])
    _, outputs, *made = builder.graph.shape(node.outputs[0])
    weights = _as_channels(builder.constant(node.inputs[1]), integers(node, "dilations")[0], width)
    bias = builder.optional_constant(node.input(2))
    strides, dilations, pads = (integers(node, name) for name in ("strides", "dilations", "pads"))
    blocks = divide_up(channels, width)
    depth = weights.shape[1] // (blocks * width)
    planes = max((made[0] - 1) * strides[0] + depth, pads[0] + size[0])
    halo = Halo(
        pads[1],
        pads[2],
        *(
            max(
                0,
                (made[axis] - 1) * strides[axis]
                + (weights.shape[axis + 1] - 1) * dilations[axis]
                + 1
                - pads[axis]
                - size[axis],
            )
            for axis in (1, 2)
        ),
    )
    x, out = builder.planar(node.inputs[0]), builder.new_planar(node.outputs[0])
    fields = {
        "kernel_h": weights.shape[2],
        "kernel_w": weights.shape[3],
        "stride_h": strides[1],
        "stride_w": strides[2],
        "dilation_h": dilations[1],
        "dilation_w": dilations[2],
        "pad_top": pads[1],
        "pad_left": pads[2],
        **clamp_fields(node),
    }
    for image in range(images):
        layout = blocked((planes, channels, size[1], size[2]), width, halo)
        volume = builder.in_arena(layout)
        rows = x.seen_as(_planes(channels, size), image * x.layout.image)
        _fill(builder, node, volume, rows, pads[0])
        seen = replace(
            layout,
            n=made[0],
            c=depth * blocks * width,
            blocks=depth * blocks,
            image=strides[0] * layout.image,
        )
        result = builder.in_arena(blocked((made[0], outputs, made[1], made[2]), width))
        conv = Direct(volume.seen_as(seen), result, None, weights, bias, 1, width, fields)
        emit_direct(builder, node, conv, _choice(builder, conv))
        rows = out.seen_as(_planes(outputs, made), image * out.layout.image)
        builder.emit("reorder_to_planes", f"{node.outputs[0]} to planes", rows, result)


def _as_channels(weights: Floats, dilation: int, width: int) -> Floats:
    """Return weights (O, C, planes, rows, columns) with a plane's channels, filled up, as channels of one image.

    Where planes are dilated, those between get zeros.
    """
    outputs, channels, planes, *kernel = weights.shape
    depth, filled = (planes - 1) * dilation + 1, divide_up(channels, width) * width
    wide = np.zeros((outputs, depth, filled, *kernel), np.float32)
    wide[:, ::dilation, :channels] = weights.transpose(0, 2, 1, 3, 4)
    return wide.reshape(outputs, depth * filled, *kernel)


def _planes(channels: int, size: list[int]) -> Layout:
    """Return one image of a volume, as it lies outside the blocks, with planes for images."""
    planes, rows, columns = size
    plane = rows * columns
    return Layout(planes, channels, rows, columns, channels, 1, columns, planes * plane, plane)


def _fill(builder: Builder, node: Node, volume: Tensor, rows: Tensor, before: int) -> None:
    """Write an image's planes into a volume, and zeros into the planes around them: there no channel is read."""
    layout, inside = volume.layout, rows.layout.n
    nothing = rows.seen_as(replace(rows.layout, n=1, c=0))
    parts = ((0, before, nothing), (before, inside, rows), (before + inside, layout.n - before - inside, nothing))
    for first, count, source in parts:
        if count > 0:
            planes = volume.seen_as(replace(layout, n=count), first * layout.image)
            builder.emit("reorder_to_blocks", f"{node.inputs[0]} to blocks", planes, source)


def _choice(builder: Builder, conv: Direct) -> Choice:
    layout, source = conv.out.layout, conv.x.layout
    work = Work(
        groups=1,
        in_blocks=source.blocks,
        lanes=conv.lanes,
        taps=conv.weights.shape[2] * conv.weights.shape[3],
        out_blocks=layout.blocks,
        rows=layout.n * layout.h,
        columns=layout.w,
        x_bytes=4 * source.n * source.c * source.h * source.w,
    )
    return Choice(algorithm="direct", **asdict(partition(work, builder.tier, builder.threads, builder.machine.caches)))
