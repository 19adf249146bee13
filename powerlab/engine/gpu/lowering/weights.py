"""Weights and biases of convolutions, in the orders in which kernels read them."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.method import Method
from powerlab.engine.gpu.lowering.packing import by_channel, by_matrices, by_tiles, per_output, ungrouped
from powerlab.engine.ir.constants import Value, derived
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

Floats = NDArray[np.float32]


class Weights(Protocol):
    """Weights of the shape (outputs, inputs of a group, rows, columns), and one bias an output.

    A node that is given is the one whose dispatches they are for.
    """

    def in_tiles(self, builder: Builder, node: Node, groups: int, tile: int) -> Storage:
        """Return them as [group][tile][tap][in block][4 inputs][block][4 outputs], a tile being so many blocks."""

    def each_channel(self, builder: Builder, node: Node) -> Storage:
        """Return those of a convolution of each channel by itself as [block][tap][4 channels]."""

    def biases(self, builder: Builder, node: Node, groups: int, blocks: int) -> Storage:
        """Return the biases of each group in float32, filled up with zeros to so many blocks of 4."""

    def ungrouped(self, groups: int) -> Weights:
        """Return weights of groups as those of all channels, 0 where they are of another group."""


class KnownWeights(Struct, frozen=True):
    """Constants, which the host packs before they go to the GPU."""

    values: Value
    bias: Floats

    def in_tiles(self, builder: Builder, node: Node, groups: int, tile: int) -> Storage:
        """See :class:`Weights`."""
        del node
        outputs, inputs, *kernel = self.values.shape
        tiles, in_blocks = -(-(outputs // groups) // (4 * tile)), -(-inputs // 4)
        packed = (groups * tiles * kernel[0] * kernel[1] * in_blocks * 4 * tile * 4,)
        return builder.constant(derived(self.values, packed, partial(pack, groups=groups, tile=tile)))

    def in_matrices(self, builder: Builder, groups: int, method: Method) -> Storage:
        """Return them as the matrices that units take, column by column: see :func:`.packing.by_matrices`."""
        outputs, inputs, *kernel = self.values.shape
        tile, step = 4 * method.tile_blocks, 4 * method.depth_blocks
        tiles = -(-(outputs // groups) // tile)
        steps = -(-kernel[0] * kernel[1] * -(-inputs // 4) * 4 // step)
        packed = (groups * tiles * steps * step * tile,)
        function = partial(by_matrices, groups=groups, tile=tile, step=step, size=method.matrix[1:])
        return builder.constant(derived(self.values, packed, function))

    def each_channel(self, builder: Builder, node: Node) -> Storage:
        """See :class:`Weights`."""
        del node
        channels, _, *kernel = self.values.shape
        packed = (-(-channels // 4) * 4 * kernel[0] * kernel[1],)
        return builder.constant(derived(self.values, packed, by_channel))

    def biases(self, builder: Builder, node: Node, groups: int, blocks: int) -> Storage:
        """See :class:`Weights`."""
        del node
        return builder.constant(per_output(self.bias, groups, blocks), floats=True)

    def ungrouped(self, groups: int) -> KnownWeights:
        """See :class:`Weights`."""
        outputs, inputs, *kernel = self.values.shape
        whole = (outputs, inputs * groups, *kernel)
        return KnownWeights(derived(self.values, whole, partial(ungrouped, groups=groups)), self.bias)


def pack(weights: Floats, groups: int, tile: int) -> Floats:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][tap][in block][4 inputs][block][4 outputs]."""
    packed: Floats = np.ascontiguousarray(by_tiles(weights, groups, 4 * tile).swapaxes(-2, -1)).reshape(-1)
    return packed
