"""Quantized convolutions and fully connected layers: ``conv_direct_u8`` and ``conv_depthwise_u8``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.codegen.attributes import function_fields
from powerlab.engine.codegen.builder import Builder
from powerlab.engine.codegen.convolutions.algorithms.direct import GroupPart, group_parts
from powerlab.engine.codegen.convolutions.algorithms.fields import kernel_fields
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape, conv_shape, halo_of
from powerlab.engine.codegen.convolutions.partition import Work, partition
from powerlab.engine.codegen.pool import window_fields
from powerlab.engine.codegen.quantized.layouts import byte_fields, signed_bytes
from powerlab.engine.codegen.quantized.pack import (
    Bytes,
    fill_blocks,
    fold_byte_row,
    in_whole_blocks,
    merge_byte_groups,
    pack_depthwise_bytes,
    pack_depthwise_neighbours,
    pack_requantization,
    packed_bytes,
    products_in_16_bits,
)
from powerlab.engine.ir.constants import Value, derived, value_of
from powerlab.engine.ir.graph import Graph, Node
from powerlab.engine.program.choice import Choice
from powerlab.engine.program.layout import BYTE_BLOCK, WORD_BYTES, Halo, Layout, divide_up
from powerlab.engine.program.program import Floats, Part, Tensor
from powerlab.engine.target.tiers import Tier

_BLOCK_WORDS = BYTE_BLOCK // WORD_BYTES

_LONGEST_KERNEL = 15
"""Of its rows depthwise_neighbours.hpp keeps as many columns as a tile has."""


def byte_halo(graph: Graph, node: Node) -> Halo:
    """Return the zero points that a QuantConv needs around the planes of its input."""
    shape = conv_shape(graph, node, ())
    return halo_of(shape, shape.size)


class Pooled(Struct, frozen=True, gc=False):
    """How a max pool ends a convolution.

    Attributes:
        node: the QuantPool.
        band: rows of the convolution's result that a thread has at a time.
        made: all of that result.
        scratch: memory for the bands.
    """

    node: Node
    band: Layout
    made: Layout
    scratch: Tensor

    def fields(self) -> dict[str, Any]:
        """Return what the step has beside that of the convolution."""
        part = Part(self.band, self.made, None, None, window_fields(self.node))
        return {"parts": (part,), "scratch": self.scratch}


class ByteConvolution(Struct, frozen=True, eq=False):
    """A QuantConv, or part of a QuantVolumeConv, on its way to a kernel.

    Attributes:
        node: the QuantConv.
        shape: its sizes; of a volume's planes, inputs are those of a window, in whole blocks.
        x: bytes that are read.
        out: bytes, or floats in blocks.
        residual: bytes that are added.
        weights: shape (O, I / groups, kh, kw); many may be a recipe.
        begin: what the sum of each output begins with.
        multipliers: of the sum of each output.
        planes: of a volume that are the channels of one image; weights have those of each behind those of another.
        pooled: how a pool ends it, whose result ``out`` then is; None where none does.
    """

    node: Node
    shape: ConvShape
    x: Tensor
    out: Tensor
    residual: Tensor | None
    weights: Value
    begin: NDArray[Any]
    multipliers: Floats
    planes: int = 1
    pooled: Pooled | None = None

    @property
    def floats(self) -> bool:
        """Tell whether the result stays floats."""
        return bool(self.node.attributes.get("floats"))


def lower_quantized_conv(builder: Builder, node: Node) -> None:
    """Lower a QuantConv: its result is bytes, or floats in blocks."""
    made = node.outputs[0]
    conv = byte_convolution(
        builder, node, builder.new_blocked(made) if node.attributes.get("floats") else builder.new_bytes(made)
    )
    if conv.shape.depthwise and not conv.floats:
        _emit_depthwise(builder, _of_stored(builder, conv))
    else:
        emit_direct(builder, conv)


def byte_convolution(builder: Builder, node: Node, out: Tensor, pooled: Pooled | None = None) -> ByteConvolution:
    """Return a QuantConv that writes ``out``."""
    weights = builder.graph.kept_constants[node.inputs[1]]
    four = (*weights.shape, *(1,) * (4 - len(weights.shape)))
    return ByteConvolution(
        node,
        conv_shape(builder.graph, node, ()),
        builder.byte_tensor(node.inputs[0]),
        out,
        builder.byte_tensor(node.input(4)) if node.input(4) else None,
        derived(weights, four, partial(np.reshape, shape=four)),
        builder.graph.constants[node.inputs[2]],
        builder.graph.constants[node.inputs[3]],
        pooled=pooled,
    )


def _of_stored(builder: Builder, conv: ByteConvolution) -> ByteConvolution:
    """Let sums begin with what they need where x - 128 is multiplied instead of x."""
    if not signed_bytes(builder.tier.byte_form):
        return conv
    weights = value_of(conv.weights)
    more = 128 * weights.reshape(len(weights), -1).sum(axis=1, dtype=np.int64)
    return replace(conv, begin=conv.begin + more)


def _emit_depthwise(builder: Builder, conv: ByteConvolution) -> None:
    width, neighbours = builder.tier.vector_width, _neighbours(conv.shape, builder.tier)
    weights = value_of(conv.weights)
    builder.emit(
        "conv_depthwise_u8_neighbours" if neighbours else "conv_depthwise_u8",
        conv.node,
        conv.out,
        conv.x,
        conv.residual,
        choice=Choice(algorithm="depthwise"),
        weights=pack_depthwise_neighbours(weights, width, neighbours)
        if neighbours
        else pack_depthwise_bytes(weights, width),
        bias=pack_requantization(conv.begin, conv.multipliers, 1, width),
        **kernel_fields(conv.shape),
        **byte_fields(conv.node, conv.out, builder.tier.byte_form),
    )


def _neighbours(shape: ConvShape, tier: Tier) -> int:
    """Return how many pixels of a row depthwise kernels of a size take at once; 0: one, each multiplied by itself."""
    neighbours = tier.depthwise_neighbours
    if not neighbours or shape.dilations != (1, 1) or neighbours % shape.strides[1]:
        return 0
    if shape.kernel == (3, 3) and shape.strides[0] == shape.strides[1]:  # has tiles of its own
        return 0
    rows, columns = shape.kernel
    return neighbours if neighbours // 2 < columns <= _LONGEST_KERNEL and rows <= _LONGEST_KERNEL else 0


def emit_direct(builder: Builder, conv: ByteConvolution, *others: ByteConvolution) -> None:
    """Append a step for each part of the groups, which are joined until they fill blocks.

    Args:
        builder: takes up the steps.
        conv: the convolution.
        others: the same with operands that lie elsewhere; they share its weights.
    """
    conv, places = _of_stored(builder, conv), (conv, *others)
    tier, shape, window = builder.tier, conv.shape, kernel_fields(conv.shape)
    words = conv.x.layout.pixel == 1
    if words:
        conv, window["kernel_w"] = replace(conv, weights=_of_each_plane(fold_byte_row, conv)), 1
    elif conv.planes > 1:
        conv = replace(conv, weights=_of_each_plane(fill_blocks, conv))
    if shape.taps == 1 and shape.strides == (1, 1) and conv.pooled is None:
        places = tuple(_as_row(one) for one in places)
    out_width = tier.vector_width if conv.floats else BYTE_BLOCK
    for part in group_parts(shape, BYTE_BLOCK):
        channels = part.channels(shape.outputs // shape.groups)
        own = _own_weights(conv.weights, channels, part)
        if not words:
            own = in_whole_blocks(own, tier.byte_form)
        groups, summed = part.groups // part.merged, divide_up(own.shape[1], WORD_BYTES)
        in_block = summed // conv.planes if words else _BLOCK_WORDS
        work = _work(places[0], groups, own.shape, in_block, tier.vector_width)
        if tier.widens_bytes:  # it is looked at here, so let it not be read again
            own = value_of(own)
        products = products_in_16_bits(value_of(own)) if tier.widens_bytes else 1
        tile = _byte_tier(tier, products)
        cut = partition(work, tile, 1 if conv.pooled else builder.threads, builder.machine.caches)
        form = "words" if products > 1 else tier.byte_form
        weights = packed_bytes(own, groups, (tile.tile_blocks, tier.vector_width), in_block, form)
        if len(places) > 1:  # what several steps share is made once
            weights = value_of(weights)
        bias = pack_requantization(
            conv.begin[channels.start : channels.stop],
            conv.multipliers[channels.start : channels.stop],
            groups,
            tier.vector_width,
        )
        for one in places:
            builder.emit(
                f"{_family(conv)}{f'_narrow{products}' * (products > 1)}",
                conv.node,
                _planes(one.out, channels, out_width),
                one.x if words else _planes(one.x, part.channels(shape.inputs // shape.groups), BYTE_BLOCK),
                None if one.residual is None else _planes(one.residual, channels, BYTE_BLOCK),
                choice=Choice(algorithm="direct", channel_split=cut.channel_split, chunk_tiles=cut.chunk_tiles),
                weights=weights,
                bias=bias,
                groups=groups,
                lanes=in_block,
                last_lanes=summed - (work.in_blocks - 1) * in_block,
                channel_split=cut.channel_split,
                chunk_tiles=cut.chunk_tiles,
                **window,
                **{**byte_fields(conv.node, one.out, tier.byte_form), **function_fields(conv.node)},
                **({} if conv.pooled is None else conv.pooled.fields()),
            )


def _family(conv: ByteConvolution) -> str:
    if conv.pooled is not None:
        return "conv_pool_u8"
    return "conv_direct_u8_f32" if conv.floats else "conv_direct_u8"


def _own_weights(weights: Value, outputs: range, part: GroupPart) -> Value:
    """Return the weights of a part of the groups, joined."""
    inputs, *kernel = weights.shape[1:]
    own = partial(_of_part, outputs=outputs, part=part)
    return derived(weights, (len(outputs), inputs * part.merged, *kernel), own)


def _of_part(weights: Bytes, outputs: range, part: GroupPart) -> Bytes:
    own = weights[outputs.start : outputs.stop]
    return own if part.merged == 1 else merge_byte_groups(own, part.groups, part.merged)


def _of_each_plane(change: Callable[[Bytes], Bytes], conv: ByteConvolution) -> Bytes:
    """Return weights, those of each plane changed by itself."""
    return np.concatenate([change(own) for own in np.split(value_of(conv.weights), conv.planes, axis=1)], axis=1)


def _byte_tier(tier: Tier, products: int) -> Tier:
    """Return the tier with the register tile of its kernels on bytes, of which so many products fit 16 bits."""
    blocks, pixels = tier.byte_tile_blocks, tier.byte_tile_pixels
    if products > 1:
        blocks, pixels = tier.narrow_tile_blocks, tier.narrow_tile_pixels
    return replace(tier, tile_blocks=blocks, tile_pixels=pixels, tall_blocks=0, long_pixels=0)


def _work(conv: ByteConvolution, groups: int, own: tuple[int, ...], in_block: int, width: int) -> Work:
    """Return what has to be done, a word counting as a channel of floats: it takes as long and is as large."""
    x, out = conv.x.layout, conv.out.layout
    x_bytes = x.n * x.c * x.h * x.w
    if conv.pooled is not None:  # a band is made at a time
        out, whole = conv.pooled.band, conv.pooled.made
        x_bytes = x_bytes * out.h // (whole.n * whole.h)
    return Work(
        groups=groups,
        in_blocks=divide_up(divide_up(own[1], WORD_BYTES), in_block),
        lanes=in_block,
        taps=math.prod(own[2:]),
        out_blocks=divide_up(own[0] // groups, width),
        rows=out.n * out.h,
        columns=out.w,
        x_bytes=x_bytes,
    )


def _planes(tensor: Tensor, channels: range, width: int) -> Tensor:
    """Return the channels of a tensor in blocks; the first begins a block."""
    layout = tensor.layout
    part = replace(layout, c=len(channels), blocks=divide_up(len(channels), width))
    return tensor.seen_as(part, channels.start // width * layout.plane)


def _as_row(conv: ByteConvolution) -> ByteConvolution:
    """Return all operands as one long row an image, and images of one pixel as one row, where all allow it."""
    for flatten in (_flat, _images_as_pixels):
        x, out = flatten(conv.x.layout), flatten(conv.out.layout)
        residual = None if conv.residual is None else flatten(conv.residual.layout)
        if x is None or out is None or (conv.residual is not None and residual is None):
            continue
        seen = None if conv.residual is None or residual is None else conv.residual.seen_as(residual)
        conv = replace(conv, x=conv.x.seen_as(x), out=conv.out.seen_as(out), residual=seen)
    return conv


def _flat(layout: Layout) -> Layout | None:
    return layout.flat()


def _images_as_pixels(layout: Layout) -> Layout | None:
    """Return images of one pixel as the pixels of one image."""
    if layout.h * layout.w != 1 or layout.halo != Halo():
        return None
    return replace(layout, n=1, w=layout.n, pixel=layout.image, row=layout.size, image=layout.size)
