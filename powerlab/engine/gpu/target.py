"""What a GPU is able to do, as far as lowering asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROCESSOR = "cpu"
"""The kind of a processor that stands in for a GPU."""

_BROADCAST_LANES = 8
"""Of a subgroup, which ``shaders/conv.comp`` counts on where lanes load weights for each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """See the module.

    Attributes:
        largest_bytes: of what a kernel sees at once.
        shared_bytes: of a work group.
        group_size: invocations of a work group at most.
        broadcasts: whether lanes load weights for each other; a processor that stands in for a GPU needs that.
        half_arithmetic: whether it computes with 16-bit numbers.
        dot_product: whether it multiplies and sums four 8-bit numbers at once.
    """

    largest_bytes: int
    shared_bytes: int = 16384
    group_size: int = 128
    broadcasts: bool = False
    half_arithmetic: bool = False
    dot_product: bool = False


def target_of(info: Any) -> Target:
    """Return the target that a native ``DeviceInfo`` describes."""
    return Target(
        largest_bytes=info.largest_buffer_bytes,
        shared_bytes=info.shared_bytes,
        group_size=info.group_size,
        broadcasts=info.kind == PROCESSOR and info.subgroup_lanes >= _BROADCAST_LANES,
        half_arithmetic=info.half_arithmetic,
        dot_product=info.dot_product,
    )
