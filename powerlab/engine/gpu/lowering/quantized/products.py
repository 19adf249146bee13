"""Kernels for convolutions of bytes: through caches or shared memory, by units for matrices, each channel alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.builder import Builder
from powerlab.engine.gpu.choice.method import BYTES_CACHED, BYTES_MATRICES, Method, Numbers
from powerlab.engine.gpu.images import Image
from powerlab.engine.gpu.lowering.convolved import Window, geometry, shape_of
from powerlab.engine.gpu.lowering.packing import by_channel, by_tiles, per_output
from powerlab.engine.gpu.recorder import MOST_GROUPS
from powerlab.engine.gpu.target import Target
from powerlab.engine.ir.graph import Node
from powerlab.engine.program.storage import Storage

_LANES = 32
"""Of a work group, where each channel is computed by itself."""


class ByteConvolution(Struct, frozen=True, kw_only=True):
    """A QuantConv or QuantVolumeConv on its way to a kernel.

    Attributes:
        node: what is computed.
        x: the image.
        made: the result.
        window: how it moves.
        weights: shape (outputs, inputs of a group, rows, columns), the rows of a volume's kernel plane by plane.
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
    weights: NDArray[np.int8]
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

    @property
    def shape(self) -> ConvShape:
        """Return all that a choice may depend on."""
        return shape_of(self.x, self.made, self.window, groups=self.groups, residual=self.residual is not None)


class _Kernel(Struct, frozen=True):
    """One of them: its shader, the lanes of a work group, and the specialization constants that not all have."""

    name: str
    lanes: int
    constants: tuple[int, ...] = ()


def emit_product(builder: Builder, conv: ByteConvolution) -> None:
    """Append a convolution whose groups fill whole blocks, the way that was chosen."""
    method = builder.choose(conv.shape, Numbers.INT8)
    if method.kernel == BYTES_MATRICES:
        conv = replace(conv, begin=_of_signed(conv))
    out_tiles = -(-conv.blocks[1] // method.tile_blocks)
    pixel_tiles = -(-conv.made.images * conv.made.pixels // method.tile_pixels(builder.target.subgroup_lanes))
    across = min(pixel_tiles, MOST_GROUPS)
    weights = _words(by_tiles(conv.weights, conv.groups, 4 * method.tile_blocks))
    groups = (across, conv.groups * out_tiles, -(-pixel_tiles // across))
    _emit(builder, conv, _kernel(method, builder.target), (weights, out_tiles * method.tile_blocks), groups)


def emit_depthwise(builder: Builder, conv: ByteConvolution) -> None:
    """Append a convolution of each channel by itself."""
    groups = -(-conv.made.vectors // _LANES)
    across = min(groups, MOST_GROUPS)
    constants = _words(by_channel(conv.weights)), conv.made.blocks
    kernel = _Kernel("quant_depthwise", _LANES)
    _emit(builder, replace(conv, groups=1), kernel, constants, (across, -(-groups // across), 1))


def _kernel(method: Method, target: Target) -> _Kernel:
    """Return a method's kernel, where there are two the one of the instructions that the device has."""
    lanes = method.lanes * method.down
    if method.kernel == BYTES_MATRICES:
        return _Kernel(method.kernel, lanes, (*method.matrix_constants(target.subgroup_lanes), method.ahead))
    name = method.kernel + "_dot" * target.dot_product
    if method.kernel == BYTES_CACHED:
        return _Kernel(name, lanes, (method.pixels, int(target.broadcasts)))
    return _Kernel(name, lanes, (method.blocks, method.pixels, method.lanes, method.down, method.depth, method.ahead))


def _words(packed: NDArray[np.int8]) -> NDArray[np.int32]:
    """Return bytes, four a word."""
    return np.ascontiguousarray(packed).reshape(-1).view(np.int32)


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
        conv.window.kernel_of(kernel.name),
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
