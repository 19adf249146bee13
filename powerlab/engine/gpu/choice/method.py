"""One way to compute a convolution: a kernel and its tiles."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import NO_MATRIX, MatrixSize

CACHED, SHARED, SHARED_HALF, MATRICES = "conv", "tiled", "tiled_half", "matrix_half"
"""Kernels: lanes read through the caches; tiles lie in shared memory; there, and products are of 16-bit numbers; there,
and units for products of matrices take them."""

MATRICES_DIRECT = "matrix_direct_half"
"""As the last, but the units take weights straight from where they lie, column by column: only pixels pass through
shared memory, and subgroups that share weights each load them."""

BYTES_CACHED, BYTES_SHARED, BYTES_MATRICES = "quant_conv", "quant_tiled", "quant_matrix"
"""The same of bytes; the first two are there with and without an instruction that multiplies and sums four."""


class Numbers(StrEnum):
    """What a convolution multiplies; sums have 32 bits."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"


class Method(Struct, frozen=True, kw_only=True):
    """Plain numbers and names: it can be kept as JSON.

    Attributes:
        kernel: one of those above.
        lanes: of a work group, along pixels; for matrices, those of whole subgroups.
        pixels: of a lane; for matrices, along pixels, of a subgroup.
        blocks: of 4 output channels, of a lane; for matrices, along output channels, of a subgroup.
        down: lanes of a work group along output channels, in shared memory; for matrices, subgroups.
        depth: input blocks that lie in shared memory at once; for matrices, along input channels.
        winograd: rows and columns of output tiles; 0: no Winograd.
        matrix: pixels, output channels and input channels of a product of matrices; zeros: none.
        ahead: steps of ``depth`` whose numbers are on their way to registers at a time, in shared memory: 1 or 2.
        parts: that the window is cut into along input channels and taps, each summed by work groups of its own; more
            than one only of numbers in shared memory.
    """

    kernel: str = CACHED
    lanes: int
    pixels: int
    blocks: int
    down: int = 1
    depth: int = 1
    winograd: int = 0
    matrix: MatrixSize = NO_MATRIX
    ahead: int = 1
    parts: int = 1

    @property
    def tile_blocks(self) -> int:
        """Return the output blocks of a work group."""
        return self.down * self.blocks * (self.matrix[1] // 4 or 1)

    @property
    def depth_blocks(self) -> int:
        """Return the input blocks that lie in shared memory at once."""
        return self.depth * (self.matrix[2] // 4 or 1)

    def tile_pixels(self, subgroup_lanes: int) -> int:
        """Return the pixels of a work group, on a device whose subgroups have so many lanes."""
        if self.matrix == NO_MATRIX:
            return self.lanes * self.pixels
        return self.lanes // subgroup_lanes * self.pixels * self.matrix[0]

    def matrix_constants(self, subgroup_lanes: int) -> tuple[int, ...]:
        """Return the specialization constants of ``shaders/matrices.glsl``."""
        return self.blocks, self.pixels, self.lanes // subgroup_lanes, self.down, self.depth, *self.matrix


Chooser = Callable[[ConvShape, Numbers], Method]
"""Says how a convolution of such numbers is computed."""


def blocks_of(shape: ConvShape) -> int:
    """Return the output blocks of a group."""
    return -(-(shape.outputs // shape.groups) // 4)
