"""Weights of 8 bits, four a word, as the kernels of bytes want them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.int8]


def pack(weights: Bytes, groups: int, tile: int) -> NDArray[np.int32]:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][tap][in block][outputs of a tile].

    A word has 4 inputs; ``tile`` is the outputs of one.
    """
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    taps = weights.shape[2] * weights.shape[3]
    in_blocks, tiles = -(-inputs // 4), -(-outputs // tile)
    filled = np.zeros((groups, tiles * tile, in_blocks * 4, taps), np.int8)
    filled[:, :outputs, :inputs] = weights.reshape(groups, outputs, inputs, taps)
    axes = filled.reshape(groups, tiles, tile, in_blocks, 4, taps)
    return np.ascontiguousarray(axes.transpose(0, 1, 5, 3, 2, 4)).reshape(-1).view(np.int32)


def by_channel(weights: Bytes) -> NDArray[np.int32]:
    """Return weights of one input each as [block][tap], 4 channels a word."""
    channels, taps = weights.shape[0], weights.shape[2] * weights.shape[3]
    filled = np.zeros((-(-channels // 4) * 4, taps), np.int8)
    filled[:channels] = weights.reshape(channels, taps)
    return np.ascontiguousarray(filled.reshape(-1, 4, taps).transpose(0, 2, 1)).reshape(-1).view(np.int32)


def ungrouped(weights: Bytes, groups: int) -> Bytes:
    """Return weights of groups as those of all channels, 0 where they are of another group."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((weights.shape[0], inputs * groups, *weights.shape[2:]), np.int8)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole


def per_output(numbers: NDArray[Any], groups: int, blocks: int) -> NDArray[Any]:
    """Return one number an output, those of each group filled up with zeros to so many blocks of 4."""
    filled = np.zeros((groups, 4 * blocks), numbers.dtype)
    own = numbers.reshape(groups, -1)
    filled[:, : own.shape[1]] = own
    return filled.reshape(-1)
