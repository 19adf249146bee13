"""Chains of convolutions that run in one pass; kernels/convolution/conv_chain.hpp says what parts and scratch are."""

from __future__ import annotations

import itertools

from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import best_tile
from powerlab.engine.codegen.convolutions.algorithms.fields import window_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shape, halo_of
from powerlab.engine.codegen.convolutions.partition import Work
from powerlab.engine.codegen.pack import fill_channels, fold_row, pack_depthwise, pack_direct
from powerlab.engine.ir.graph import Graph, Node, convolutions_of
from powerlab.engine.program.layout import NO_HALO, Halo, Layout, blocked, divide_up, shape4
from powerlab.engine.program.program import Floats, Part, Tensor
from powerlab.engine.program.storage import FLOAT_BYTES
from powerlab.engine.target.machine import Machine
from powerlab.engine.target.tiers import Tier


def chain_halo(graph: Graph, node: Node) -> Halo:
    """Return the zeros a Chain needs around its input's planes; an image from outside gets them where it is copied."""
    shape = conv_shape(graph, convolutions_of(node)[0], ())
    return NO_HALO if shape.from_outside else halo_of(shape, shape.size)


def lower_chain(builder: Builder, node: Node) -> None:
    """Lower a Chain."""
    head, depthwise, *tail = convolutions_of(node)
    first, second = (conv_shape(builder.graph, conv, ()) for conv in (head, depthwise))
    x = _source(builder, head, first)
    residual = builder.blocked(node.inputs[1]) if node.inputs[1] else None
    out = builder.new_blocked(node.outputs[0])
    width = builder.tier.vector_width
    head_tier = _tile(builder.machine, first, first.size)
    blocks = divide_up(second.inputs, width) if tail else head_tier.tile_blocks
    rows = _band_rows(second, blocks, builder.machine, tail=bool(tail))
    ring, band = _ring(second, blocks, rows, width), _band(second, rows, width)
    parts = [
        _dense(builder, head, first, x.layout, _as_result(ring, second, width), tier=head_tier),
        _depthwise(builder, depthwise, second, ring, band if tail else out.layout),
        *(_tail(builder, conv, band, out.layout) for conv in tail),
    ]
    floats = ring.size + (band.size if tail else 0)
    builder.emit(
        "conv_chain",
        node,
        out,
        x,
        residual,
        scratch=builder.scratch(floats),
        parts=tuple(parts),
        channel_split=1 if tail else _channel_split(second, head_tier, builder.threads),
        chunk_tiles=rows,
    )


def _source(builder: Builder, head: Node, shape: ConvShape) -> Tensor:
    """Return what the head reads: blocks, or the pixels of an image from outside with their channels side by side."""
    name = head.inputs[0]
    if not shape.from_outside:
        return builder.blocked(name)
    x = builder.in_arena(blocked(shape4(builder.graph.shape(name)), shape.inputs, halo_of(shape, shape.size)))
    builder.emit("reorder_to_blocks", f"{name} interleaved", x, builder.external(name))
    return x


def _tail(builder: Builder, conv: Node, band: Layout, out: Layout) -> Part:
    """Return the part that reads a band, whose rows are one long row where nothing lies between those of ``out``."""
    shape = conv_shape(builder.graph, conv, ())
    lies_flat = out.row == out.w * out.pixel
    size = (1, band.h * band.w) if lies_flat else (band.h, band.w)
    return _dense(builder, conv, shape, band, out, tier=_tile(builder.machine, shape, size))


def _tile(machine: Machine, shape: ConvShape, size: tuple[int, int]) -> Tier:
    """Return the tier with the register tile that suits a dense part which makes so many rows and columns at a time."""
    width = machine.tier.vector_width
    work = Work(
        groups=1,
        in_blocks=divide_up(shape.inputs, width),
        lanes=width,
        taps=shape.taps,
        out_blocks=divide_up(shape.outputs, width),
        rows=size[0],
        columns=size[1],
        x_bytes=shape.bytes_read,
    )
    return best_tile(work, shape.inputs, machine)


def _dense(builder: Builder, conv: Node, shape: ConvShape, x: Layout, out: Layout, *, tier: Tier) -> Part:
    """Return a part for a register tile of ``conv_direct``."""
    weights, lanes, fields = builder.constant(conv.inputs[1]), tier.vector_width, window_fields(shape, conv)
    if shape.from_outside:
        weights, fields = fold_row(weights), {**fields, "kernel_w": 1}
        lanes = weights.shape[1]
    blocks = divide_up(weights.shape[1], lanes)
    block_bytes = lanes * weights.shape[2] * weights.shape[3] * tier.tile_blocks * tier.vector_width * FLOAT_BYTES
    chunks = divide_up(blocks, max(1, builder.machine.caches.l1_bytes * 2 // 3 // block_bytes))
    packed = pack_direct(weights, 1, tier.vector_width, tier.tile_blocks, lanes)
    dense = {
        "groups": 1,
        "lanes": lanes,
        "last_lanes": weights.shape[1] - (blocks - 1) * lanes,
        "chunk_blocks": divide_up(blocks, chunks),
        "unit_blocks": tier.tile_blocks,
    }
    return Part(x, out, packed, _bias(builder, conv, out), {**fields, **dense})


def _depthwise(builder: Builder, conv: Node, shape: ConvShape, ring: Layout, out: Layout) -> Part:
    packed = pack_depthwise(builder.constant(conv.inputs[1]), builder.tier.vector_width)
    return Part(ring, out, packed, _bias(builder, conv, out), window_fields(shape, conv))


def _bias(builder: Builder, conv: Node, out: Layout) -> Floats:
    channels = builder.graph.shape(conv.inputs[1])[0]
    return fill_channels(builder.optional_constant(conv.input(2)), channels, out.blocks, builder.tier.vector_width)


def _ring(depthwise: ConvShape, blocks: int, rows: int, width: int) -> Layout:
    """Return where a thread keeps rows of the head's result: as many as ``rows`` rows of the next one read."""
    needed = halo_of(depthwise, depthwise.size)
    reach = (depthwise.kernel[0] - 1) * depthwise.dilations[0] + 1
    slots = (rows - 1) * depthwise.strides[0] + reach
    sides = Halo(left=needed.left, right=needed.right)
    return blocked((1, blocks * width, slots, depthwise.in_size[1]), width, sides)


def _band(depthwise: ConvShape, rows: int, width: int) -> Layout:
    return blocked((1, depthwise.outputs, rows, depthwise.size[1]), width)


def _as_result(ring: Layout, depthwise: ConvShape, width: int) -> Layout:
    """Return the ring as the head's result: its strides, but all rows and channels there are."""
    channels, (rows, columns) = depthwise.inputs, depthwise.in_size
    blocks = divide_up(channels, width)
    return Layout(1, channels, rows, columns, blocks, ring.pixel, ring.row, ring.plane, ring.image, ring.halo)


def _band_rows(depthwise: ConvShape, blocks: int, machine: Machine, *, tail: bool) -> int:
    """Return how many rows a thread takes at a time: ring and band fill a quarter of the second-level cache at most."""
    width = machine.tier.vector_width

    def fits(rows: int) -> bool:
        floats = _ring(depthwise, blocks, rows, width).size
        if tail:
            floats += _band(depthwise, rows, width).size
        return floats * FLOAT_BYTES <= machine.caches.l2_bytes // 4

    return max(1, sum(1 for _ in itertools.takewhile(fits, range(1, depthwise.size[0] + 1))))


def _channel_split(depthwise: ConvShape, tier: Tier, threads: int) -> int:
    """Return into how many parts the channels go; threads that have the same channels share the rows."""
    units = divide_up(divide_up(depthwise.inputs, tier.vector_width), tier.tile_blocks)
    rows = depthwise.images * depthwise.size[0]

    def share(split: int) -> int:
        row_parts = threads // split
        return divide_up(units, split) * (divide_up(rows, row_parts) + (row_parts > 1))

    return min((split for split in range(1, threads + 1) if threads % split == 0), key=share)
