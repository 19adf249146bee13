"""Recording of the rails of the total: around a timed part, and for the idle baseline."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from powerlab.domain.power import Rail, TotalFormula
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.validity import ENERGY_RULES
from powerlab.measure.power import TotalEnergy, total_energy
from powerlab.measure.validity import Evidence, judge
from powerlab.power.recorder import Recorder
from powerlab.sysroot import Sysroot

MIN_MARGIN_S = 0.1
MAX_MARGIN_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How the board's power is read.

    Attributes:
        sysroot: where the sensors are.
        total: the formula of the board's power; None where no rail can be read.
        rails: the rails to record: those of the formula, and the others of the same sources for their traces.
        sample_period_s: time between two samples.
    """

    sysroot: Sysroot
    total: TotalFormula | None
    rails: Sequence[Rail]
    sample_period_s: float

    @property
    def margin_s(self) -> float:
        """How long to record before and after a window: enough updates of the slowest rail to find its edges."""
        slowest_s = max((rail.update_period_s for rail in self.rails), default=0.0)
        return min(MAX_MARGIN_S, max(MIN_MARGIN_S, 3 * self.sample_period_s, 2 * slowest_s))

    def recorder(self) -> Recorder | None:
        """Return a recorder of the rails, not yet started; None where there is nothing to record."""
        keys = tuple(rail.key for rail in self.rails)
        return Recorder(self.sysroot, keys, self.sample_period_s) if keys else None


def idle_baseline(meter: Meter, duration_s: float) -> TotalEnergy | None:
    """Record for a time without load; None where no duration is asked or a rule says the power cannot be used."""
    recorder = meter.recorder()
    if recorder is None or meter.total is None or duration_s <= 0:
        return None
    with recorder:
        time.sleep(meter.margin_s)
        start_ns = time.monotonic_ns()
        time.sleep(duration_s)
        end_ns = time.monotonic_ns()
        time.sleep(meter.margin_s)
        traces = recorder.stop()
    evidence = Evidence(
        window_ns=(start_ns, end_ns),
        inference_count=0,
        total=meter.total,
        traces=traces,
        sample_period_s=meter.sample_period_s,
    )
    return usable_energy(evidence, judge(evidence))


def usable_energy(evidence: Evidence, findings: Iterable[Finding]) -> TotalEnergy | None:
    """Return the board's energy in the window; None where a finding says that its power may not be used."""
    void = any(finding.rule in ENERGY_RULES and finding.verdict is Verdict.VOID for finding in findings)
    if evidence.total is None or void:
        return None
    return total_energy(evidence.total, evidence.traces, evidence.window_ns)
