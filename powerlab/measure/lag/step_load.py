"""Step load: switch a load on and off while every rail of the total is recorded."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, Trace
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Processor, Workload
from powerlab.measure.lag.edges import RailLag, rail_lag
from powerlab.measure.recording.rails import Meter, Recording
from powerlab.measure.run import load_request, worker_cores
from powerlab.measure.worker.messages import Measure
from powerlab.measure.worker.process import Worker, WorkerError

WORKLOADS = {
    Processor.CPU: Workload(model="mobilenetv2", batch_size=1),
    Processor.GPU: Workload(model="resnet50", batch_size=8, processor=Processor.GPU),
}
"""The zoo's smallest network, whose inferences are short even on one slow core; on a card one that keeps it busy."""
SAMPLE_PERIOD_S = 0.005
SHORTEST_LEVEL_S = 0.5
PERIODS_A_LEVEL = 10
"""Half a level is left to settle, and the other half needs some readings of a sensor that is read once a period."""
SLOWEST_S = 2.0
"""A rail with a longer update period would need minutes of load for a handful of edges."""
_LONGER = 0.5
"""Every level is up to so much longer than the shortest one, by chance, so that no period locks with another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLoad:
    """What to do.

    Attributes:
        threads: threads of the load.
        cycles: how often it goes on.
        level_s: the shortest time between two edges.
        seed: of the chance in the others.
        processor: what computes it.
    """

    threads: int
    cycles: int
    level_s: float
    seed: int = 0
    processor: Processor = Processor.CPU

    @property
    def expected_s(self) -> float:
        """How long it takes, but for loading the model."""
        return (2 * self.cycles + 1) * self.level_s * (1 + _LONGER / 2)

    def lengths_s(self) -> Iterator[float]:
        """Yield the length of every level: rest, load, rest..., load, rest."""
        chance = random.Random(self.seed)  # noqa: S311 - phases, not a secret
        for _ in range(2 * self.cycles + 1):
            yield self.level_s * (1 + _LONGER * chance.random())


def level_s(meter: Meter) -> float:
    """Return how long a level must be for the slowest rail that is not too slow."""
    slowest_s = max((rail.update_period_s for rail in meter.rails if rail.update_period_s <= SLOWEST_S), default=0.0)
    return max(SHORTEST_LEVEL_S, PERIODS_A_LEVEL * slowest_s)


def measured_lags(meter: Meter, load: StepLoad) -> tuple[RailLag, ...]:
    """Run the load and return what each rail of the meter showed of it, in the meter's order.

    Raises:
        PowerlabError: the rails cannot be recorded, or the load cannot be run.
    """
    found = {rail.key: _too_slow(rail) for rail in meter.rails if rail.update_period_s > SLOWEST_S}
    if len(found) < len(meter.rails):
        try:
            traces, edges_ns, until_ns = _recorded(meter, load)
        except WorkerError as error:
            raise PowerlabError(f"the load cannot be run: {error}") from error
        found = {trace.rail.key: rail_lag(trace, edges_ns, until_ns) for trace in traces} | found
    return tuple(found[rail.key] for rail in meter.rails)


def _too_slow(rail: Rail) -> RailLag:
    problem = f"{rail.key} has a new value only every {rail.update_period_s:.2g} s, too slow for a step of load."
    return RailLag(rail=rail, problem=problem)


def _recorded(meter: Meter, load: StepLoad) -> tuple[tuple[Trace, ...], list[int], int]:
    """Return the traces, the moments at which the load went on and off, and when the last rest ended."""
    point = Point(workload=WORKLOADS[load.processor], threads=load.threads, mode="current")
    edges_ns: list[int] = []
    with Worker(worker_cores(point)) as worker:
        worker.load(load_request(point, meter, load.seed))
        worker.warm_up(load.level_s)
        # A card's library is read faster than its figures change, to see when they do.
        with Recording(meter, every_period=load.processor is Processor.GPU) as recording:
            for number, length_s in enumerate(load.lengths_s()):
                if number % 2 == 0:
                    time.sleep(length_s)
                else:
                    timed = worker.measure(Measure(duration_s=length_s, min_inferences=1, margin_s=0.0))
                    edges_ns += timed.window_ns
            until_ns = time.monotonic_ns()
            traces = recording.finish()
    if recording.failure is not None:
        raise PowerlabError(f"the power cannot be recorded: {recording.failure}")
    return traces, edges_ns, until_ns
