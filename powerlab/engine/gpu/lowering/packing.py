"""Weights and what there is of each output in the orders in which kernels read them, in numbers of any type."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


def by_tiles(weights: NDArray[_Number], groups: int, tile: int) -> NDArray[_Number]:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][tap][in block][output of a tile][4 inputs].

    What fills up tiles and blocks is 0; it is a view of other strides.
    """
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    taps = weights.shape[2] * weights.shape[3]
    in_blocks, tiles = -(-inputs // 4), -(-outputs // tile)
    filled = np.zeros((groups, tiles * tile, in_blocks * 4, taps), weights.dtype)
    filled[:, :outputs, :inputs] = weights.reshape(groups, outputs, inputs, taps)
    return filled.reshape(groups, tiles, tile, in_blocks, 4, taps).transpose(0, 1, 5, 3, 2, 4)


def by_matrices(
    weights: NDArray[_Number], groups: int, tile: int, step: int, size: tuple[int, int]
) -> NDArray[_Number]:
    """Return weights (outputs, inputs, rows, columns) as [group][tile][k / K][output of a tile / N][N][K], flat.

    Args:
        weights: of all groups.
        groups: of channels.
        tile: outputs of a tile, whole matrices.
        step: inputs of a window, whole matrices, to a multiple of which zeros fill it up.
        size: columns N and inner K of a matrix.
    """
    n, k = size
    of_tiles = by_tiles(weights, groups, tile)
    _, tiles, taps, in_blocks, _, _ = of_tiles.shape
    windows = of_tiles.swapaxes(-2, -1).reshape(groups, tiles, taps * in_blocks * 4, tile)
    filled = np.pad(windows, ((0, 0), (0, 0), (0, -windows.shape[2] % step), (0, 0)))
    of_matrices = filled.reshape(groups, tiles, -1, k, tile // n, n).transpose(0, 1, 2, 4, 5, 3)
    return np.ascontiguousarray(of_matrices).reshape(-1)


def by_channel(weights: NDArray[_Number]) -> NDArray[_Number]:
    """Return weights of one input each as [block][tap][4 channels]."""
    channels, taps = weights.shape[0], weights.shape[2] * weights.shape[3]
    filled = np.zeros((-(-channels // 4) * 4, taps), weights.dtype)
    filled[:channels] = weights.reshape(channels, taps)
    return np.ascontiguousarray(filled.reshape(-1, 4, taps).transpose(0, 2, 1)).reshape(-1)


def ungrouped(weights: NDArray[_Number], groups: int) -> NDArray[_Number]:
    """Return weights of groups as those of all channels, 0 where they are of another group."""
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((weights.shape[0], inputs * groups, *weights.shape[2:]), weights.dtype)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole


def per_output(numbers: NDArray[_Number], groups: int, blocks: int) -> NDArray[_Number]:
    """Return one number an output, those of each group filled up with zeros to so many blocks of 4."""
    filled = np.zeros((groups, 4 * blocks), numbers.dtype)
    own = numbers.reshape(groups, -1)
    filled[:, : own.shape[1]] = own
    return filled.reshape(-1)
