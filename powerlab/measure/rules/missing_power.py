"""``missing-power``: the board's power was not recorded, or not usable."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from powerlab.domain.power import RailQuantity, TotalFormula, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.energy.rail import covers, rail_energy
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement


def missing_power(evidence: Evidence) -> Iterator[Judgement]:
    """No power is a state to show, never 0 W."""
    if evidence.total is None:
        yield Verdict.VOID, "no power source can be read on this device, so the run has no power figures"
        return
    if evidence.power_failure is not None:
        yield Verdict.VOID, evidence.power_failure
        return
    complaints = list(_missing_rails(evidence, evidence.total))
    if not complaints:
        energy_j = math.fsum(rail_energy(trace, *evidence.window_ns).energy_j for trace in evidence.total_traces())
        if energy_j <= 0:
            complaints.append(f"the rails of the total add up to {energy_j:g} J, and no machine runs on 0 W")
    for complaint in complaints:
        yield Verdict.VOID, complaint


def _missing_rails(evidence: Evidence, total: TotalFormula) -> Iterator[str]:
    found = {trace.rail.key: trace for trace in evidence.total_traces()}
    for key in total.rails:
        if key not in found:
            yield f"the rail {key} belongs to the total but gave no samples"
        elif not covers(found[key], *evidence.window_ns):
            yield f"the samples of {key} do not span the timed window"
        elif not np.all(np.isfinite(found[key].value)):
            yield f"the rail {key} gave readings that are no numbers"
        elif found[key].rail.quantity is RailQuantity.ENERGY and _moved_j(found[key]) <= 0:
            yield f"the energy counter {key} did not move in {evidence.window_s:.2f} s"


def _moved_j(trace: Trace) -> float:
    return float(trace.value[-1] - trace.value[0])
