"""Tiles of attention for units that compute products of matrices (``VK_KHR_cooperative_matrix``)."""

from __future__ import annotations

import math

from msgspec import Struct

from powerlab.engine.gpu.target import MatrixSize, Target

_TILES = ((4, 64), (4, 32), (2, 64), (2, 32), (1, 32))
"""Subgroups of a work group, and keys at a time."""

_HALF_BYTES, _FLOAT_BYTES = 2, 4
_OTHER_BANKS = 8
"""Numbers behind each line of 16 bits, so that neighbours are in other banks; 4 behind one of 32."""

AT_A_TIME = 8
"""Numbers of 16 bits that are brought into shared memory at a time, by one load where they lie side by side."""


class Size(Struct, frozen=True, kw_only=True):
    """How large an attention is: queries of a head, numbers of each and of a value, heads of all images."""

    rows: int
    inner: int
    width: int
    batch: int


class Kernel(Struct, frozen=True):
    """A shader, the queries of a work group, and its specialization constants."""

    name: str
    rows: int
    constants: tuple[int, ...]


class AttentionTiles(Struct, frozen=True, kw_only=True):
    """How a work group shares an attention: see ``shaders/products/attention_matrix_half.comp``.

    Attributes:
        size: queries, keys or columns, and inner numbers of one matrix product.
        subgroup_lanes: of the device.
        subgroups: of a work group, each with the queries of one matrix.
        keys: at a time.
        inner: numbers of a query, filled up to whole matrices.
        width: numbers of a value, filled up likewise.
    """

    size: MatrixSize
    subgroup_lanes: int
    subgroups: int
    keys: int
    inner: int
    width: int

    @property
    def rows(self) -> int:
        """Return the queries of a work group."""
        return self.subgroups * self.size[0]

    def fits(self, target: Target) -> bool:
        """Tell whether a device has the lanes and the shared memory, and whether they share the work evenly."""
        m, n, k = self.size
        halves = self.rows * (max(self.keys, self.inner) + _OTHER_BANKS)
        halves += self.keys * (self.inner + self.width + 2 * _OTHER_BANKS)
        floats = self.rows * (max(self.keys, self.width) + _OTHER_BANKS // 2 + 3)
        needed = _HALF_BYTES * halves + _FLOAT_BYTES * floats
        lanes = self.subgroups * self.subgroup_lanes
        sharing = max(self.subgroup_lanes // m, 1)
        even = m % (self.subgroup_lanes // sharing) == 0 and self.keys % n == self.keys % k == 0
        return even and lanes <= target.group_size and needed <= target.shared_bytes

    def kernel(self, ends: tuple[int, int], *, wide: bool) -> Kernel:
        """Return the kernel; ``ends``: whether there is a mask, and whether a row without a key is zeros."""
        sizes = (self.subgroups, self.keys, self.inner, self.width)
        constants = (self.subgroups * self.subgroup_lanes, *sizes, *ends, int(wide), *self.size)
        return Kernel("attention_matrix_half", self.rows, constants)


def by_matrices(size: Size, target: Target) -> AttentionTiles | None:
    """Return tiles of the largest matrices that a device takes, or None where it has no such units.

    Those with the most queries a work group come first, as long as there are work groups for all cores.
    """
    found: list[AttentionTiles] = []
    for matrix in sorted(target.matrices, key=math.prod, reverse=True):
        _, n, k = matrix
        for subgroups, keys in _TILES:
            tiles = AttentionTiles(
                size=matrix,
                subgroup_lanes=target.subgroup_lanes,
                subgroups=subgroups,
                keys=keys,
                inner=_whole(size.inner, math.lcm(k, AT_A_TIME)),
                width=_whole(size.width, math.lcm(n, AT_A_TIME)),
            )
            if tiles.fits(target):
                found.append(tiles)
        if found:
            break
    filling = (one for one in found if -(-size.rows // one.rows) * size.batch >= target.cores)
    return next(filling, found[-1] if found else None)


def _whole(numbers: int, parts: int) -> int:
    return -(-numbers // parts) * parts
