"""Gradients of convolutions' weights: a product over pixels, or each channel by itself."""

from __future__ import annotations

import math

from msgspec import Struct

from powerlab.engine.codegen.attributes import number
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.lowering.convolved import geometry
from powerlab.engine.gpu.lowering.training.convolution import window_of
from powerlab.engine.gpu.lowering.training.sums import parts_of
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.ir.graph import Node

_SIDE, _PIXELS = 8, 16
"""Lanes of a work group along each side of its tile, and pixels that it takes at a time."""

_LANES = 64
"""That share the pixels of a channel with weights of its own."""

_MOST_SCRATCH_BYTES = 64 << 20
"""Of the parts of one layer's gradients."""


class _Tile(Struct, frozen=True):
    """Blocks along one side of a work group's tile: of a lane, and lanes."""

    blocks: int
    lanes: int

    @property
    def size(self) -> int:
        return self.blocks * self.lanes


def lower_conv_weight_gradient(builder: Builder, node: Node) -> None:
    """Lower a ConvWeightGradient."""
    x, given = builder.image(node.inputs[0]), builder.image(node.inputs[1])
    outputs, inputs, *kernel = builder.graph.shape(node.outputs[0])
    groups, window = int(number(node, "group")), window_of(node, tuple(kernel))
    sources = [builder.blocks(name) for name in node.inputs]
    made = builder.new_rows(node.outputs[0])
    moves = geometry(x, given, window)
    if groups == x.channels == given.channels > 1:
        builder.emit(
            "depthwise_weight_gradient",
            node,
            (made, *sources),
            constants=(_LANES,),
            push=(*moves, groups, x.blocks, given.blocks, given.channels),
            groups=(math.prod(kernel), given.blocks, 1),
        )
        return
    own = outputs // groups
    merged = groups > 1 and bool(own % 4 or inputs % 4)
    apart = 1 if merged else groups
    out_blocks, in_blocks = -(-(given.channels // apart) // 4), -(-(x.channels // apart) // 4)
    columns = math.prod(kernel) * in_blocks
    down, across = _tile(out_blocks), _tile(columns)
    tiles = (-(-columns // across.size), apart * -(-out_blocks // down.size))
    every = 4 * 4 * apart * out_blocks * columns
    most = max(1, min(_MOST_SCRATCH_BYTES, builder.target.largest_bytes) // (4 * every))
    parts = min(parts_of(builder.target, math.prod(tiles), given.images * given.pixels), most, MOST_GROUPS)
    sums = builder.room(parts * every)
    builder.emit(
        "weight_gradient",
        node,
        (sums, *sources),
        constants=(down.lanes * across.lanes, down.blocks, across.blocks, down.lanes, across.lanes, _PIXELS),
        push=(*moves, apart, in_blocks, out_blocks, parts),
        groups=(*tiles, parts),
    )
    count = builder.graph.tensors[node.outputs[0]].elements
    sizes = (own, inputs, math.prod(kernel), out_blocks, in_blocks)
    builder.emit_flat("weight_gradient_end", node, (made, sums), count, push=(count, *sizes, int(merged), parts, every))


def _tile(blocks: int) -> _Tile:
    """Return a tile for so many blocks: two a lane where there are many."""
    lanes = min(_SIDE, 1 << (blocks - 1).bit_length())
    return _Tile(2 if blocks > lanes else 1, lanes)
