"""What a GPU is able to do, as far as lowering asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec import Struct

PROCESSOR = "cpu"
"""The kind of a processor that stands in for a GPU."""

MatrixSize = tuple[int, int, int]
"""Rows m, columns n and inner k of a product of matrices, m x k times k x n."""

NO_MATRIX: MatrixSize = (0, 0, 0)

UNKNOWN_CORES = 16
"""Assumed where a driver does not tell: Vulkan itself does not ask for it, and few extensions do."""

STAND_IN_LANES = 32
"""Of a work group on a processor that stands in for a GPU."""

_BROADCAST_LANES = 8
"""Of a subgroup, which ``shaders/convolution/conv.comp`` counts on where lanes load weights for each other."""


class Target(Struct, frozen=True, kw_only=True):
    """See the module.

    Attributes:
        largest_bytes: of what a kernel sees at once.
        alignment_bytes: of the address from which on a kernel sees memory.
        shared_bytes: of a work group.
        group_size: invocations of a work group at most.
        cores: that have shared memory of their own.
        broadcasts: whether lanes load weights for each other; a processor that stands in for a GPU needs that.
        half_arithmetic: whether it computes with 16-bit numbers.
        dot_product: whether it multiplies and sums four 8-bit numbers at once.
        subgroup_lanes: of a subgroup.
        matrices: of 16-bit numbers, whose products a subgroup sums in 32 bits at once; none: it has no such units.
        byte_matrices: the same of signed bytes.
    """

    largest_bytes: int
    alignment_bytes: int = 256
    shared_bytes: int = 16384
    group_size: int = 128
    cores: int = UNKNOWN_CORES
    broadcasts: bool = False
    half_arithmetic: bool = False
    dot_product: bool = False
    subgroup_lanes: int = 0
    matrices: tuple[MatrixSize, ...] = ()
    byte_matrices: tuple[MatrixSize, ...] = ()

    def lanes(self, most: int) -> int:
        """Return the lanes of a work group that shares what it computes: a power of two.

        Args:
            most: that a GPU is worth; a processor that stands in for one has a few subgroups of them.
        """
        return STAND_IN_LANES if self.broadcasts else min(most, 1 << (self.group_size.bit_length() - 1))


def target_of(info: Any) -> Target:
    """Return the target that a native ``DeviceInfo`` describes."""
    return Target(
        largest_bytes=info.largest_buffer_bytes,
        alignment_bytes=info.alignment_bytes,
        shared_bytes=info.shared_bytes,
        group_size=info.group_size,
        cores=info.cores or UNKNOWN_CORES,
        broadcasts=info.kind == PROCESSOR and info.subgroup_lanes >= _BROADCAST_LANES,
        half_arithmetic=info.half_arithmetic,
        dot_product=info.dot_product,
        subgroup_lanes=info.subgroup_lanes,
        matrices=_sizes(info.matrices),
        byte_matrices=_sizes(info.byte_matrices),
    )


def _sizes(listed: Sequence[Sequence[int]]) -> tuple[MatrixSize, ...]:
    """Return sizes that the kernels can cut their tiles into: whole vectors of four along each side."""
    whole = (tuple(one) for one in listed if not any(side % 4 for side in one))
    return tuple(dict.fromkeys(cast("Iterator[MatrixSize]", whole)))
