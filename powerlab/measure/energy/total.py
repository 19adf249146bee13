"""Power of the whole board in a window: the sum of the rails of the total, with a 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.domain.budget import combined, half_width, interval, of_metric
from powerlab.domain.power import TotalFormula, Trace
from powerlab.domain.quantity import Metric, Provenance, common_provenance
from powerlab.domain.run import Contribution
from powerlab.measure.energy.budget import Part, above, lines_of, scaled
from powerlab.measure.energy.rail import RailEnergy, rail_energy


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalEnergy:
    """Energy of the formula's rails in a window.

    Attributes:
        energy_j: the sum.
        duration_s: the window.
        parts: what makes it uncertain, by rail and effect.
        provenance: the one provenance all rails share.
        by_slopes_j: the same energy as the trapezoid of the counters' slopes; None where not all rails are counters.
    """

    energy_j: float
    duration_s: float
    parts: tuple[Part, ...]
    provenance: Provenance
    by_slopes_j: float | None = None

    @property
    def power_w(self) -> float:
        """Mean power in the window."""
        return self.energy_j / self.duration_s

    @property
    def half_width_j(self) -> float:
        """Half-width of the 95 % interval of the energy."""
        return half_width(self.parts)

    @property
    def gain_j(self) -> float:
        """Standard uncertainty of the gains."""
        return combined(part for part in self.parts if part.effect == "gain")

    @property
    def independent_j(self) -> float:
        """Standard uncertainty of everything else."""
        return combined(part for part in self.parts if part.effect != "gain")


def total_energy(total: TotalFormula, traces: Sequence[Trace], window_ns: tuple[int, int]) -> TotalEnergy:
    """Add up the formula's rails over a window.

    Raises:
        KeyError: a rail of the formula has no trace.
        ValueError: a trace does not cover the window.
        PowerlabError: the rails are of different provenance.
    """
    by_key = {trace.rail.key: trace for trace in traces}
    chosen = [by_key[key] for key in total.rails]
    energies = [rail_energy(trace, *window_ns) for trace in chosen]
    return TotalEnergy(
        energy_j=math.fsum(energy.energy_j for energy in energies),
        duration_s=(window_ns[1] - window_ns[0]) / 1e9,
        parts=tuple(
            part for trace, energy in zip(chosen, energies, strict=True) for part in _parts(trace.rail.key, energy)
        ),
        provenance=common_provenance(trace.rail.provenance for trace in chosen),
        by_slopes_j=_by_slopes_j(energies),
    )


def _by_slopes_j(energies: Sequence[RailEnergy]) -> float | None:
    found_j = [energy.by_slopes_j for energy in energies if energy.by_slopes_j is not None]
    return math.fsum(found_j) if len(found_j) == len(energies) else None


def _parts(key: str, energy: RailEnergy) -> Iterator[Part]:
    for effect, uncertainty_j in (("gain", energy.gain_j), *energy.other_j.items()):
        yield Part(origin=key, effect=effect, standard_uncertainty=uncertainty_j)


def energy_budget(load: TotalEnergy, idle: TotalEnergy | None, image_count: int) -> tuple[Contribution, ...]:
    """Return the lines of every figure that :func:`energy_metrics` makes, each in its figure's unit."""
    lines = [
        *lines_of("power_w", load.parts, 1 / load.duration_s),
        *lines_of("energy_per_image_j", load.parts, 1 / image_count),
        *lines_of("efficiency_img_per_s_per_w", load.parts, image_count / load.energy_j**2),
    ]
    if load.by_slopes_j is not None:
        lines += lines_of("power_by_slopes_w", load.parts, 1 / load.duration_s)
    if idle is not None:
        parts = above(load.parts, scaled(idle.parts, load.duration_s / idle.duration_s))
        lines += lines_of("idle_power_w", idle.parts, 1 / idle.duration_s)
        lines += lines_of("energy_above_idle_per_image_j", parts, 1 / image_count)
    return tuple(lines)


def energy_metrics(load: TotalEnergy, idle: TotalEnergy | None, image_count: int) -> tuple[Metric, ...]:
    """Return power, energy per image and efficiency, and what is above idle where an idle baseline exists.

    Each interval is what its lines of the budget make of it.
    """
    values = {
        "power_w": load.power_w,
        "energy_per_image_j": load.energy_j / image_count,
        "efficiency_img_per_s_per_w": image_count / load.energy_j,
    }
    provenance = load.provenance
    if idle is not None:
        provenance = common_provenance((load.provenance, idle.provenance))
        values["idle_power_w"] = idle.power_w
        values["energy_above_idle_per_image_j"] = (load.energy_j - idle.power_w * load.duration_s) / image_count
    if load.by_slopes_j is not None:
        values["power_by_slopes_w"] = load.by_slopes_j / load.duration_s
    budget = energy_budget(load, idle, image_count)
    return tuple(_figure(name, value, budget, provenance) for name, value in values.items())


def _figure(name: str, value: float, budget: Sequence[Contribution], provenance: Provenance) -> Metric:
    low, high = interval(name, value, half_width(of_metric(budget, name)))
    return Metric(name=name, value=value, low=low, high=high, provenance=provenance)
