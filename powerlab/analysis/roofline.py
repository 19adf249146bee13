"""Layers under their roofs (Williams, Waterman and Patterson, *Roofline*, CACM 52(4), 2009).

A layer's arithmetic intensity is its floating-point operations per byte that it must move at least. Under the roof it
can do min(peak, intensity × memory bandwidth) operations a second. A layer may stand above the slanted part, where
caches hold what it reads, and above the flat one, where an algorithm (Winograd's) needs fewer multiplications than the
operations that are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.layers import Layer, LayerProfile, Roof


class Bound(StrEnum):
    """Which part of the roof is above a layer."""

    MEMORY = "memory"
    COMPUTE = "compute"


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """One layer in a roofline.

    Attributes:
        index: the layer's place in the plan.
        flop_per_byte: its arithmetic intensity.
        gflops: 10^9 operations a second that it reached within inferences.
        gb_per_s: 10^9 bytes a second that it moved at least.
        bound: which part of the roof is above it; None where no roof was measured.
        percent_of_roof: what it reached of what the roof allows; None where no roof was measured.
    """

    index: int
    flop_per_byte: float
    gflops: float
    gb_per_s: float
    bound: Bound | None
    percent_of_roof: float | None


def roofline(profile: LayerProfile) -> tuple[RooflinePoint, ...]:
    """Return every layer's place under the roof, in the order of the plan."""
    return tuple(_point(layer, profile.roof) for layer in profile.layers)


def ridge_flop_per_byte(roof: Roof) -> float:
    """Return the intensity from which on memory is no bound any more."""
    return roof.peak_gflops / roof.memory_gb_per_s


def _point(layer: Layer, roof: Roof | None) -> RooflinePoint:
    time_ns = layer.time.value * 1e6
    intensity = layer.flops / layer.bytes_moved if layer.bytes_moved else 0.0
    gflops, gb_per_s = (amount / time_ns if time_ns > 0 else 0.0 for amount in (layer.flops, layer.bytes_moved))
    bound, percent = None, None
    if roof is not None:
        # What only moves numbers is measured by the bytes it moves.
        bound = Bound.COMPUTE if intensity > ridge_flop_per_byte(roof) else Bound.MEMORY
        percent = 100 * (gflops / roof.peak_gflops if bound is Bound.COMPUTE else gb_per_s / roof.memory_gb_per_s)
    return RooflinePoint(
        index=layer.index,
        flop_per_byte=intensity,
        gflops=gflops,
        gb_per_s=gb_per_s,
        bound=bound,
        percent_of_roof=percent,
    )
