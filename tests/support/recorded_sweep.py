"""A sweep of two points, three repeats each, whose figures follow from their records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from powerlab.domain.device_state import Clock, DeviceState
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from recorded_run import Recorded, recorded_run

SWEEP_ID = "5eed0000-0000-4000-8000-000000000001"
PLAN = SweepPlan(models=("resnet50",), threads=(1, 2), batch_sizes=(4,))


@dataclass(frozen=True, kw_only=True)
class RecordedSweep:
    """Runs in the plan's order, and what was recorded with each."""

    sweep_id: str
    plan: SweepPlan
    runs: tuple[Run, ...]
    traces: dict[str, tuple[Trace, ...]]


@cache
def recorded_sweep(sweep_id: str = SWEEP_ID, speed: float = 1.0) -> RecordedSweep:
    """Return the sweep; the second point is nearly twice as fast as the first, both ``speed`` times as usual."""
    state = DeviceState(kernel="6.1", cpu_clocks=(Clock(name="policy0", governor="performance", high_hz=2 * 10**9),))
    made: list[Recorded] = []
    for index, point in enumerate(PLAN.points()):
        for repeat in range(PLAN.repeats):
            query_s = 0.04 / (1 + 0.9 * index) * (1 + 0.01 * repeat) / speed
            found = recorded_run(
                sweep_id=sweep_id,
                point=point,
                repeat=repeat,
                query_s=query_s,
                measured_with="0.1.0",
                device_state=state,
            )
            number = f"{sweep_id[-1]}{index}{repeat}"
            made.append(
                Recorded(run=replace(found.run, id=f"{number:0>8}-0000-4000-8000-0{number:0>11}"), traces=found.traces)
            )
    return RecordedSweep(
        sweep_id=sweep_id,
        plan=PLAN,
        runs=tuple(one.run for one in made),
        traces={one.run.id: one.traces for one in made},
    )
