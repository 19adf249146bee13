"""Weights that training moves: a dispatch packs them in front of the convolution that reads them."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.computed_weights import ComputedWeights
from powerlab.engine.program.operand import Operand
from powerlab.engine.program.storage import Storage

_LANES = 4
"""Inputs of a block."""


class MovingWeights(ComputedWeights, frozen=True, eq=False):
    """Computed weights; see :class:`powerlab.engine.gpu.lowering.weights.Weights`."""

    def in_tiles(self, builder: Builder, node: Node, groups: int, tile: int) -> Storage:
        """See :class:`powerlab.engine.gpu.lowering.weights.Weights`."""
        _, outputs, inputs, *kernel = self.values.sizes
        tiles = -(-outputs * self.merged // (4 * tile))
        in_blocks = -(-inputs * self.merged // _LANES)
        return _packed(builder, node, self.values, (groups, tiles, tile, *kernel, in_blocks, _LANES), self.merged)

    def each_channel(self, builder: Builder, node: Node) -> Storage:
        """See :class:`powerlab.engine.gpu.lowering.weights.Weights`."""
        channels, *_, rows, columns = self.values.sizes
        by_channel = self.values.permuted((1, 0, 2, 3, 4))
        return _packed(builder, node, by_channel, (1, -(-channels // 4), 1, rows, columns, 1, 1), 1)

    def biases(self, builder: Builder, node: Node, groups: int, blocks: int) -> Storage:
        """See :class:`powerlab.engine.gpu.lowering.weights.Weights`."""
        if self.bias is None:
            return builder.constant(np.zeros((groups, 4 * blocks), np.float32), floats=True)
        channels = self.bias.sizes[0]
        as_weights = self.bias.split(0, (groups, channels // groups, 1, 1, 1))
        return _packed(builder, node, as_weights, (groups, blocks, 1, 1, 1, 1, 1), 1)

    def ungrouped(self, groups: int) -> MovingWeights:
        """See :class:`powerlab.engine.gpu.lowering.weights.Weights`."""
        return replace(self, merged=groups)


def _packed(builder: Builder, node: Node, values: Operand, sizes: tuple[int, ...], merged: int) -> Storage:
    """Append a dispatch that packs weights, and return where they are then.

    Args:
        builder: gets it.
        node: whose weights they are.
        values: the weights.
        sizes: groups, tiles of one, blocks of a tile, rows, columns, blocks of inputs, and inputs of a block.
        merged: groups of the weights that are one.
    """
    count = int(np.prod(sizes))
    made = builder.room(4 * count)
    _, outputs, inputs, *_ = values.sizes
    push = (count, *sizes[1:], outputs, inputs, merged, *values.strides, values.offset)
    builder.emit_flat("pack_weights", node, (made, values.storage), count, push=push)
    return made
