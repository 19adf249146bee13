"""What another device's clock makes uncertain of its energy, and each device's share of several devices' energy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from powerlab.domain.budget import half_width
from powerlab.domain.power import Trace
from powerlab.domain.run import NodePower
from powerlab.measure.energy.budget import Part
from powerlab.measure.energy.rail import covers, rail_energy

_SQRT3 = 3.0**0.5


def clock_errors_of(nodes: Iterable[NodePower]) -> dict[str, float]:
    """Return by how much the times of each rail of another device may be wrong, in s, by its key."""
    return {key: node.clock_error_s for node in nodes if node.clock_error_s for key in node.rails}


def clock_parts(traces: Sequence[Trace], window_ns: tuple[int, int], errors_s: Mapping[str, float]) -> tuple[Part, ...]:
    """Return what the clocks make unknown: half the difference of the energies in the earliest and the latest window.

    That is the half-width of a rectangle (JCGM 100:2008, 4.3.7).
    """
    found = []
    for trace in traces:
        shift_ns = round(1e9 * errors_s.get(trace.rail.key, 0.0))
        windows = [(window_ns[0] + by, window_ns[1] + by) for by in (-shift_ns, shift_ns)]
        if shift_ns and all(covers(trace, *one) for one in windows):
            early_j, late_j = (rail_energy(trace, *one).energy_j for one in windows)
            found.append(
                Part(origin=trace.rail.key, effect="clock", standard_uncertainty=abs(late_j - early_j) / 2 / _SQRT3)
            )
    return tuple(found)


def with_energies(
    nodes: Sequence[NodePower], traces: Sequence[Trace], parts: Sequence[Part], window_ns: tuple[int, int]
) -> tuple[NodePower, ...]:
    """Return the devices with the energy of each, whose interval its rails' lines make.

    Args:
        nodes: the devices.
        traces: the rails of all of them.
        parts: what makes the whole energy uncertain.
        window_ns: the timed part.
    """
    found = []
    for node in nodes:
        energy_j = sum(rail_energy(trace, *window_ns).energy_j for trace in traces if trace.rail.key in node.rails)
        half_j = half_width(part for part in parts if part.origin in node.rails)
        found.append(replace(node, energy_j=energy_j, low_j=energy_j - half_j, high_j=energy_j + half_j))
    return tuple(found)
