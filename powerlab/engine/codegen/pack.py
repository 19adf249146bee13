"""Weights in the order the kernels read them; each function's result is described in its kernel's header.

What large weights become lies where vectors may be loaded from, so that the plan keeps it as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.ir.constants import Recipe, Value, recipe_of
from powerlab.engine.program.layout import divide_up
from powerlab.engine.program.program import Floats
from powerlab.engine.target.tiers import native_engine

Doubles = NDArray[np.float64]


ALIGNMENT_BYTES = 64
"""Of packed weights: the widest vector, and a cache line."""


def aligned_floats(count: int) -> Floats:
    """Return ``count`` floats, not yet written, that begin at a multiple of :data:`ALIGNMENT_BYTES`, in large pages.

    Raises:
        MemoryError: there is no such memory.
    """
    floats: Floats = native_engine().empty_floats(count)
    return floats


def fill_channels(values: Floats | None, channels: int, blocks: int, width: int) -> Floats:
    """Return per-channel values, shape (channels,), as ``blocks * width`` floats; absent ones and the rest are 0."""
    if values is not None and channels == blocks * width:
        return np.ascontiguousarray(values.reshape(-1), np.float32)
    filled = np.zeros(blocks * width, np.float32)
    if values is not None:
        filled[:channels] = values.reshape(-1)
    return filled


def merge_groups(weights: Floats, groups: int, merged: int) -> Floats:
    """Join each ``merged`` neighbouring groups of a convolution into one group with zeros between them.

    Args:
        weights: shape (O, I / groups, kh, kw).
        groups: groups of the convolution.
        merged: how many become one; divides ``groups``.

    Returns:
        Shape (O, merged * I / groups, kh, kw): the same convolution with ``groups / merged`` groups.
    """
    outputs, inputs, *kernel = weights.shape
    per_group = outputs // groups
    joined = np.zeros((outputs, merged * inputs, *kernel), np.float32)
    for group in range(groups):
        rows = slice(group * per_group, (group + 1) * per_group)
        at = group % merged * inputs
        joined[rows, at : at + inputs] = weights[rows]
    return joined


def mergeable_groups(inputs: int, outputs: int, groups: int, width: int) -> int:
    """Return how many groups must become one so that channels fill whole blocks on both sides.

    Args:
        inputs: input channels of one group.
        outputs: output channels of one group.
        groups: groups of the convolution.
        width: channels of a block.
    """
    for merged in range(1, groups):
        if groups % merged == 0 and merged * inputs % width == 0 and merged * outputs % width == 0:
            return merged
    return groups


def unit_bounds(blocks: int, tile_blocks: int) -> list[int]:
    """Return where the units of output blocks begin and end: units of nearly equal size, at most ``tile_blocks``."""
    units = divide_up(blocks, tile_blocks)
    return [unit * blocks // units for unit in range(units + 1)]


def packed_direct_floats(shape: tuple[int, ...], groups: int, width: int) -> int:
    """Return how many floats :func:`pack_direct` makes of weights of a shape."""
    outputs, *summed = shape
    return groups * divide_up(outputs // groups, width) * width * math.prod(summed)


def pack_direct(
    weights: Floats,
    groups: int,
    width: int,
    tile_blocks: int,
    lanes: int,
    *,
    packed: Floats | None = None,
    queue: Any = None,
) -> Floats:
    """Pack a convolution for ``conv_direct``: [unit][input block][kh][kw][lane][block of the unit][width].

    Args:
        weights: shape (O, I / groups, kh, kw), with any strides.
        groups: groups of the convolution; with more than one, channels fill whole blocks on both sides.
        width: channels of an output block.
        tile_blocks: output blocks of a unit at most.
        lanes: channels of an input block.
        packed: what to pack into, of :func:`packed_direct_floats`; None: new memory.
        queue: native ``WorkQueue`` that packs them later; None: it is done now.
    """
    if packed is None:
        packed = aligned_floats(packed_direct_floats(weights.shape, groups, width))
    native_engine().pack_direct(
        weights=weights.reshape(*weights.shape[:2], -1),
        packed=packed,
        groups=groups,
        width=width,
        tile_blocks=tile_blocks,
        lanes=lanes,
        queue=queue,
    )
    return packed


def filled_rows(rows: Floats, count: int) -> Floats:
    """Return the rows with zeros behind them, ``count`` altogether."""
    if len(rows) == count:
        return rows
    filled = np.zeros((count, *rows.shape[1:]), np.float32)
    filled[: len(rows)] = rows
    return filled


def pack_depthwise(weights: Floats, width: int) -> Floats:
    """Pack a depthwise convolution, shape (C, 1, kh, kw), as [block][kh][kw][width]."""
    channels, _, kernel_h, kernel_w = weights.shape
    blocks = divide_up(channels, width)
    filled = np.zeros((blocks * width, kernel_h, kernel_w), np.float32)
    filled[:channels] = weights[:, 0]
    return filled.reshape(blocks, width, kernel_h, kernel_w).transpose(0, 2, 3, 1).ravel()


def pack_grouped(weights: Floats, width: int) -> Floats:
    """Pack a convolution in groups, shape (C, channels of a group, kh, kw), as [block][kh][channel][kw][width]."""
    channels, *kernel = weights.shape
    blocks = divide_up(channels, width)
    rows = filled_rows(weights, blocks * width)
    return rows.reshape(blocks, width, *kernel).transpose(0, 3, 2, 4, 1).ravel()


def fold_row(weights: Floats) -> Floats:
    """Fold kernel columns into the channels, column first: (O, I, kh, kw) becomes (O, kw * I, kh, 1).

    In the interleaved layout the channels of neighbouring pixels are neighbours, so a kernel row is one run of lanes.
    """
    outputs, inputs, kernel_h, kernel_w = weights.shape
    return weights.transpose(0, 3, 1, 2).reshape(outputs, kernel_w * inputs, kernel_h, 1)


def fold_strides(weights: Floats, stride: int) -> Floats:
    """Fold pixels a stride apart into the channels: (O, I, kh, kw) becomes (O, I * stride^2, kh / stride, kw / stride).

    Rounded up: zeros fill the last stride. Rows of a stride come before columns, both after the channel.
    """
    outputs, inputs, *kernel = weights.shape
    rows, columns = (divide_up(length, stride) for length in kernel)
    filled = np.zeros((outputs, inputs, rows * stride, columns * stride), np.float32)
    filled[:, :, : kernel[0], : kernel[1]] = weights
    apart = filled.reshape(outputs, inputs, rows, stride, columns, stride).transpose(0, 1, 3, 5, 2, 4)
    return np.ascontiguousarray(apart).reshape(outputs, inputs * stride**2, rows, columns)


WINOGRAD_G: dict[int, Doubles] = {
    2: np.array([[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]]),
    4: np.array(
        [
            [1 / 4, 0, 0],
            [-1 / 6, -1 / 6, -1 / 6],
            [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6],
            [1 / 24, -1 / 12, 1 / 6],
            [0, 0, 1],
        ]
    ),
    6: np.array(
        [
            [1, 0, 0],
            [-2 / 9, -2 / 9, -2 / 9],
            [-2 / 9, 2 / 9, -2 / 9],
            [1 / 90, 1 / 45, 2 / 45],
            [1 / 90, -1 / 45, 2 / 45],
            [32 / 45, 16 / 45, 8 / 45],
            [32 / 45, -16 / 45, 8 / 45],
            [0, 0, 1],
        ]
    ),
}
"""G of F(2, 3), F(4, 3) and F(6, 3), by output tile size (Lavin and Gray, 2016, section 4)."""

WINOGRAD_G_5: dict[int, Doubles] = {
    4: np.array(
        [
            [1, 0, 0, 0, 0],
            [-2 / 9, -2 / 9, -2 / 9, -2 / 9, -2 / 9],
            [-2 / 9, 2 / 9, -2 / 9, 2 / 9, -2 / 9],
            [1 / 90, 1 / 45, 2 / 45, 4 / 45, 8 / 45],
            [1 / 90, -1 / 45, 2 / 45, -4 / 45, 8 / 45],
            [32 / 45, 16 / 45, 8 / 45, 4 / 45, 2 / 45],
            [32 / 45, -16 / 45, 8 / 45, -4 / 45, 2 / 45],
            [0, 0, 0, 0, 1],
        ]
    ),
}
"""G of F(4, 5): the points are those of F(6, 3)."""


def winograd_g(tile: int, taps: int) -> Doubles:
    """Return G of F(tile, taps), shape (tile + taps - 1, taps)."""
    return {3: WINOGRAD_G, 5: WINOGRAD_G_5}[taps][tile]


def packed_winograd_floats(shape: tuple[int, ...], tile: int, width: int, groups: int) -> int:
    """Return how many floats :func:`pack_winograd` makes of weights of a shape."""
    outputs, inputs, _, size = shape
    return groups * divide_up(outputs // groups, width) * width * inputs * (tile + size - 1) ** 2


def pack_winograd(
    weights: Floats, tile: int, width: int, tile_blocks: int, groups: int = 1, *, queue: Any = None
) -> Floats:
    """Transform and pack a convolution for ``conv_winograd``: [unit][position][channel][block][width].

    Args:
        weights: shape (O, I / groups, R, R), R being 3 or 5.
        tile: output tile size.
        width: channels of an output block.
        tile_blocks: output blocks of a unit at most.
        groups: groups of the convolution; with more than one, channels fill whole blocks on both sides.
        queue: native ``WorkQueue`` that does it later; None: it is done now.
    """
    size = weights.shape[3]
    g = winograd_g(tile, size)
    packed = aligned_floats(packed_winograd_floats(weights.shape, tile, width, groups))
    native_engine().pack_winograd(
        weights=np.ascontiguousarray(weights, np.float32),
        g=g,
        packed=packed,
        groups=groups,
        width=width,
        tile_blocks=tile_blocks,
        queue=queue,
    )
    return packed


def packed_weights(weights: Value, floats: int, pack: Callable[..., Floats]) -> Recipe:
    """Return the recipe of packed weights, which is one for small weights, too: another thread may pack them.

    Args:
        weights: as they are.
        floats: how many ``pack`` makes.
        pack: packs them.
    """
    return recipe_of((weights,), (floats,), pack)


def packs_in_queue(way: Callable[..., Any] | None) -> TypeGuard[partial[Floats]]:
    """Tell whether what a recipe does may be done by a queue: ``way`` then takes ``queue``."""
    return isinstance(way, partial) and way.func in {pack_direct, pack_winograd}


def interleave_gates(values: Floats, width: int, count: int = 4) -> Floats:
    """Put the gates of a hidden unit side by side, vector by vector, for the kernels of recurrent cells.

    Args:
        values: shape (count * hidden, n), gate after gate.
        width: hidden units of a vector; units that fill up the last one get zeros.
        count: gates of the cell; an LSTM has four.

    Returns:
        Shape (count * units, n): [unit block][gate][width], ``units`` being hidden units filled up to whole vectors.
    """
    return _gates_in_blocks(values, width, count).transpose(1, 0, 2, 3).reshape(-1, values.shape[1])


def _gates_in_blocks(values: Floats, width: int, count: int) -> Floats:
    """Return gates of shape (count * hidden, n) as (count, unit blocks, width, n), zeros filling up the last block."""
    rows, columns = values.shape
    hidden = rows // count
    blocks = divide_up(hidden, width)
    filled = values.reshape(count, hidden, columns)
    if hidden < blocks * width:
        filled = np.zeros((count, blocks * width, columns), np.float32)
        filled[:, :hidden] = values.reshape(count, hidden, columns)
    return filled.reshape(count, blocks, width, columns)


def pack_recurrence(weights: Floats, width: int, count: int = 4) -> Floats:
    """Pack what hidden units add to the gates of a recurrent cell: [unit block][unit of the step before][gate][width].

    Args:
        weights: shape (count * hidden, hidden), gate after gate.
        width: hidden units of a vector.
        count: gates of the cell.
    """
    return _gates_in_blocks(weights, width, count).transpose(1, 3, 0, 2).reshape(-1)
