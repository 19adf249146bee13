"""Kernels for convolutions of bytes: through caches or shared memory, by units for matrices, each channel alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.matrices import matrix_tiles
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolved import Window, geometry
from powerlab.engine.gpu.lowering.quantized.weights import Bytes, by_channel, pack, per_output
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_LANES, _PIXELS, _TILE_BLOCKS = 32, 4, 2
_ACROSS, _DEPTH = 8, 4
_MATRICES = "quant_matrix"
_SHARED_PIXELS, _SHARED_BLOCKS = 64, 4
"""Of a product that is worth shared memory, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteConvolution:
    """A QuantConv on its way to a kernel.

    Attributes:
        node: the QuantConv.
        x: the image.
        made: the result.
        window: how it moves.
        weights: shape (outputs, inputs of a group, rows, columns).
        begin: what the sum of each output begins with.
        multipliers: of the sum of each output.
        groups: of channels.
        floats: whether the result stays numbers of the network.
        function: the code of what follows then.
        numbers: low, high, slope, alpha, beta, and the ratio of what is added.
        zeros: zero points of the image, of what is added, and of the result.
        source: where the image lies.
        residual: where that lies which is added, or None.
        out: where the result goes.
    """

    node: Node
    x: Image
    made: Image
    window: Window
    weights: Bytes
    begin: NDArray[Any]
    multipliers: NDArray[Any]
    groups: int
    floats: bool
    function: int
    numbers: tuple[float, ...]
    zeros: tuple[int, ...]
    source: Storage
    residual: Storage | None
    out: Storage

    @property
    def blocks(self) -> tuple[int, int]:
        """Return the blocks of a group's inputs and outputs."""
        inputs, outputs = (-(-(one.channels // self.groups) // 4) for one in (self.x, self.made))
        return inputs, outputs


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One of them, with the tile that a work group takes: its pixels, and its blocks of outputs.

    ``constants`` are the specialization constants that not all of them have.
    """

    name: str
    lanes: int
    pixels: int
    blocks: int
    constants: tuple[int, ...]


def emit_product(builder: Builder, conv: ByteConvolution) -> None:
    """Append a convolution whose groups fill whole blocks."""
    kernel = _kernel(builder.target, conv)
    if kernel.name == _MATRICES:
        conv = replace(conv, begin=_of_signed(conv))
    out_tiles = -(-conv.blocks[1] // kernel.blocks)
    pixel_tiles = -(-conv.made.images * conv.made.pixels // kernel.pixels)
    across = min(pixel_tiles, MOST_GROUPS)
    weights = pack(conv.weights, conv.groups, 4 * kernel.blocks)
    groups = (across, conv.groups * out_tiles, -(-pixel_tiles // across))
    _emit(builder, conv, kernel, (weights, out_tiles * kernel.blocks), groups)


def emit_depthwise(builder: Builder, conv: ByteConvolution) -> None:
    """Append a convolution of each channel by itself."""
    groups = -(-conv.made.vectors // _LANES)
    across = min(groups, MOST_GROUPS)
    kernel = _Kernel("quant_depthwise", _LANES, _LANES, 1, ())
    constants = by_channel(conv.weights), conv.made.blocks
    _emit(builder, replace(conv, groups=1), kernel, constants, (across, -(-groups // across), 1))


def _kernel(target: Target, conv: ByteConvolution) -> _Kernel:
    """Return the rule's kernel: through the caches on a processor that stands in for a GPU, and where little is shared.

    A GPU takes its units for products of matrices where it has them, else shared memory.
    """
    by_dot = "_dot" * target.dot_product
    pixels, blocks = conv.made.images * conv.made.pixels, conv.blocks[1]
    if target.broadcasts or pixels < _SHARED_PIXELS or blocks < _SHARED_BLOCKS:
        own = (_PIXELS, int(target.broadcasts))
        return _Kernel(f"quant_conv{by_dot}", _LANES, _LANES * _PIXELS, _TILE_BLOCKS, own)
    outputs = conv.made.channels // conv.groups
    tiles = next(matrix_tiles(target.byte_matrices, pixels, outputs, target, 1), None)
    if tiles is not None:
        lanes = tiles.across * tiles.down * target.subgroup_lanes
        return _Kernel(_MATRICES, lanes, tiles.rows, tiles.outputs // 4, tiles.constants)
    down = _ACROSS if blocks >= _ACROSS * _TILE_BLOCKS else _ACROSS // 2
    constants = (_TILE_BLOCKS, _PIXELS, _ACROSS, down, _DEPTH)
    return _Kernel(f"quant_tiled{by_dot}", _ACROSS * down, _ACROSS * _PIXELS, down * _TILE_BLOCKS, constants)


def _of_signed(conv: ByteConvolution) -> NDArray[np.int32]:
    """Return what sums begin with where 128 is taken off the values."""
    taken_off = 128 * conv.weights.reshape(len(conv.weights), -1).sum(axis=1, dtype=np.int64)
    begin: NDArray[np.int32] = (conv.begin + taken_off).astype(np.int32)
    return begin


def _emit(
    builder: Builder,
    conv: ByteConvolution,
    kernel: _Kernel,
    packed: tuple[NDArray[np.int32], int],
    groups: tuple[int, int, int],
) -> None:
    """Append a dispatch over the operands that all kernels share.

    Args:
        builder: gets it.
        conv: what is computed.
        kernel: by what.
        packed: weights as the kernel wants them, and the blocks of a group that its other constants fill.
        groups: work groups.
    """
    weights, blocks = packed
    builder.emit(
        kernel.name,
        conv.node,
        (
            *(conv.out, conv.out),  # as bytes and as numbers: a kernel writes it as one of them
            conv.source,
            builder.constant(weights, integers=True),
            builder.constant(per_output(conv.begin, conv.groups, blocks), integers=True),
            builder.constant(per_output(conv.multipliers, conv.groups, blocks), floats=True),
            conv.residual or conv.source,
        ),
        constants=(kernel.lanes, conv.function, int(conv.residual is not None), int(conv.floats), *kernel.constants),
        push=(*conv.numbers, *geometry(conv.x, conv.made, conv.window), conv.groups, *conv.blocks, *conv.zeros),
        groups=groups,
        written=2,
    )
