"""Weights and biases of convolutions, in the orders in which kernels read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.gpu.builder import Builder
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


@dataclass(frozen=True, slots=True)
class KnownWeights:
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

    def each_channel(self, builder: Builder, node: Node) -> Storage:
        """See :class:`Weights`."""
        del node
        channels, _, *kernel = self.values.shape
        packed = (-(-channels // 4) * 4 * kernel[0] * kernel[1],)
        return builder.constant(derived(self.values, packed, _each_channel))

    def biases(self, builder: Builder, node: Node, groups: int, blocks: int) -> Storage:
        """See :class:`Weights`."""
        del node
        filled = np.zeros((groups, 4 * blocks), np.float32)
        filled[:, : len(self.bias) // groups] = self.bias.reshape(groups, -1)
        return builder.constant(filled, floats=True)

    def ungrouped(self, groups: int) -> KnownWeights:
        """See :class:`Weights`."""
        outputs, inputs, *kernel = self.values.shape
        whole = (outputs, inputs * groups, *kernel)
        return KnownWeights(derived(self.values, whole, partial(_ungrouped, groups=groups)), self.bias)


def pack(weights: Floats, groups: int, tile: int) -> Floats:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][tap][in block][4 inputs][block][4 outputs]."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    taps = weights.shape[2] * weights.shape[3]
    in_blocks, tiles = -(-inputs // 4), -(-outputs // (4 * tile))
    filled = np.zeros((groups, tiles * tile * 4, in_blocks * 4, taps), np.float32)
    filled[:, :outputs, :inputs] = weights.reshape(groups, outputs, inputs, taps)
    axes = filled.reshape(groups, tiles, tile, 4, in_blocks, 4, taps)
    packed: Floats = np.ascontiguousarray(axes.transpose(0, 1, 6, 4, 5, 2, 3)).reshape(-1)
    return packed


def _each_channel(weights: Floats) -> Floats:
    channels, taps = weights.shape[0], weights.shape[2] * weights.shape[3]
    filled = np.zeros((-(-channels // 4) * 4, taps), np.float32)
    filled[:channels] = weights.reshape(channels, taps)
    packed: Floats = np.ascontiguousarray(filled.reshape(-1, 4, taps).transpose(0, 2, 1)).reshape(-1)
    return packed


def _ungrouped(weights: Floats, groups: int) -> Floats:
    """Return weights of groups as those of all channels, 0 where they are of another group."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((weights.shape[0], inputs * groups, *weights.shape[2:]), np.float32)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole
