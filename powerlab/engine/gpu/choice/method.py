"""One way to compute a convolution: a kernel and its tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from powerlab.engine.codegen.convolutions.conv_shape import ConvShape
from powerlab.engine.gpu.target import NO_MATRIX, MatrixSize

CACHED, SHARED, SHARED_HALF, MATRICES = "conv", "tiled", "tiled_half", "matrix_half"
"""Kernels: lanes read through the caches; tiles lie in shared memory; there, and products are of 16-bit numbers; there,
and units for products of matrices take them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """Plain numbers and names: it can be kept as JSON.

    Attributes:
        kernel: :data:`CACHED`, :data:`SHARED`, :data:`SHARED_HALF` or :data:`MATRICES`.
        lanes: of a work group, along pixels; for matrices, those of whole subgroups.
        pixels: of a lane; for matrices, along pixels, of a subgroup.
        blocks: of 4 output channels, of a lane; for matrices, along output channels, of a subgroup.
        down: lanes of a work group along output channels, in shared memory; for matrices, subgroups.
        depth: input blocks that lie in shared memory at once; for matrices, along input channels.
        winograd: rows and columns of output tiles; 0: no Winograd.
        matrix: pixels, output channels and input channels of a product of matrices; zeros: none.
    """

    kernel: str = CACHED
    lanes: int
    pixels: int
    blocks: int
    down: int = 1
    depth: int = 1
    winograd: int = 0
    matrix: MatrixSize = NO_MATRIX

    @property
    def tile_blocks(self) -> int:
        """Return the output blocks of a work group."""
        return self.down * self.blocks * (self.matrix[1] // 4 or 1)

    def tile_pixels(self, subgroup_lanes: int) -> int:
        """Return the pixels of a work group, on a device whose subgroups have so many lanes."""
        if self.matrix == NO_MATRIX:
            return self.lanes * self.pixels
        return self.lanes // subgroup_lanes * self.pixels * self.matrix[0]


Chooser = Callable[[ConvShape], Method]
