"""Power of the whole board in a window: the rails of the total formula added up, with a 95 % interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.domain.power import TotalFormula, Trace
from powerlab.domain.quantity import Metric, Provenance, common_provenance
from powerlab.domain.statistics import NORMAL_95
from powerlab.measure.energy import rail_energy


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalEnergy:
    """Energy of the formula's rails in a window.

    Attributes:
        energy_j: the sum.
        duration_s: the window.
        gain_j: standard uncertainty of the gains. Rails of one source may share their error (a common reference), so
            theirs are added; different sources are combined as root of the sum of squares.
        independent_j: standard uncertainty of everything else, as root of the sum of squares, but for the edges of
            one source's rails: their readings are late alike, and follow the same load, so theirs are added, too.
        provenance: the one provenance all rails share.
    """

    energy_j: float
    duration_s: float
    gain_j: float
    independent_j: float
    provenance: Provenance

    @property
    def power_w(self) -> float:
        """Mean power in the window."""
        return self.energy_j / self.duration_s

    @property
    def half_width_j(self) -> float:
        """Half-width of the 95 % interval of the energy."""
        return NORMAL_95 * math.hypot(self.gain_j, self.independent_j)


def total_energy(total: TotalFormula, traces: Sequence[Trace], window_ns: tuple[int, int]) -> TotalEnergy:
    """Add up the formula's rails over a window.

    Raises:
        KeyError: a rail of the formula has no trace.
        ValueError: a trace does not cover the window.
        PowerlabError: the rails are of different provenance.
    """
    by_key = {trace.rail.key: trace for trace in traces}
    chosen = [by_key[key] for key in total.rails]
    gain_j: defaultdict[str, float] = defaultdict(float)
    edge_j: defaultdict[str, float] = defaultdict(float)
    energies = [rail_energy(trace, *window_ns) for trace in chosen]
    for trace, energy in zip(chosen, energies, strict=True):
        gain_j[trace.rail.source] += energy.gain_j
        edge_j[trace.rail.source] += energy.other_j["edge"]
    alone_j = (part for energy in energies for name, part in energy.other_j.items() if name != "edge")
    return TotalEnergy(
        energy_j=math.fsum(energy.energy_j for energy in energies),
        duration_s=(window_ns[1] - window_ns[0]) / 1e9,
        gain_j=math.hypot(*gain_j.values()),
        independent_j=math.hypot(*edge_j.values(), *alone_j),
        provenance=common_provenance(trace.rail.provenance for trace in chosen),
    )


def power_metric(name: str, energy: TotalEnergy) -> Metric:
    """Return the mean power in W; its interval never reaches below 0 W."""
    half_width_w = energy.half_width_j / energy.duration_s
    return Metric(
        name=name,
        value=energy.power_w,
        low=max(0.0, energy.power_w - half_width_w),
        high=energy.power_w + half_width_w,
        provenance=energy.provenance,
    )


def energy_metrics(load: TotalEnergy, idle: TotalEnergy | None, image_count: int) -> tuple[Metric, ...]:
    """Return power, energy per image and efficiency, and what is above idle where an idle baseline exists."""
    half_width_j = load.half_width_j
    low_j, high_j = max(0.0, load.energy_j - half_width_j), load.energy_j + half_width_j
    metrics = [
        power_metric("power_w", load),
        Metric(
            name="energy_per_image_j",
            value=load.energy_j / image_count,
            low=low_j / image_count,
            high=high_j / image_count,
            provenance=load.provenance,
        ),
        Metric(
            name="efficiency_img_per_s_per_w",
            value=image_count / load.energy_j,
            low=image_count / high_j if low_j > 0 else None,
            high=image_count / low_j if low_j > 0 else None,
            provenance=load.provenance,
        ),
    ]
    if idle is not None:
        metrics += [power_metric("idle_power_w", idle), _above_idle(load, idle, image_count)]
    return tuple(metrics)


def _above_idle(load: TotalEnergy, idle: TotalEnergy, image_count: int) -> Metric:
    """Return the energy above idle; one sensor reads both, so its gain error acts on the difference alone."""
    scale = load.duration_s / idle.duration_s
    energy_j = load.energy_j - idle.energy_j * scale
    gain_j = abs(load.gain_j - idle.gain_j * scale)
    half_width_j = NORMAL_95 * math.hypot(gain_j, load.independent_j, idle.independent_j * scale)
    return Metric(
        name="energy_above_idle_per_image_j",
        value=energy_j / image_count,
        low=(energy_j - half_width_j) / image_count,
        high=(energy_j + half_width_j) / image_count,
        provenance=common_provenance((load.provenance, idle.provenance)),
    )
