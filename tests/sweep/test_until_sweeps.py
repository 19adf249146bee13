"""Sweeps that go on beyond their plan, with runs on paper: what is repeated, how it is counted, and when it ends."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from paper_runs import meter_of, rail, runs_of
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.order import Done
from powerlab.domain.sweep import MOST_REPEATS_UNTIL, SweepPlan
from powerlab.measure.run import Measured, RunRequest
from powerlab.sweep import runner
from powerlab.sweep.events import RunFinished, RunStarted, SweepEvent, SweepExtended, SweepFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.model_check import ModelCheck
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree

MODES = (CURRENT_MODE, PowerMode(name="fast"), PowerMode(name="slow"))


class PaperBench:
    """A device whose runs are written down beforehand: each point's img/s/W scatter around 10 by their own share."""

    def __init__(self, scatter: Callable[[RunRequest], float], spread: float = 0.001) -> None:
        self._scatter, self._spread = scatter, spread
        self._rng = np.random.default_rng(0)
        self.requests: list[RunRequest] = []
        self.temperatures = iter(range(40, 400))

    def measure(self, request: RunRequest) -> Measured:
        self.requests.append(request)
        value = 10.0 * (1 + self._scatter(request) * self._rng.normal())
        (run,) = runs_of(request.point, value, spread=self._spread)
        return Measured(run=run, start_c=float(next(self.temperatures)))


@pytest.fixture
def carried_out(monkeypatch, tmp_path: Path) -> Callable[..., list[SweepEvent]]:
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state", name="bench")

    @contextmanager
    def applied(name: str):
        yield

    host.controller = SimpleNamespace(  # type: ignore[assignment]
        modes=lambda: MODES, find=lambda name: None, recover=lambda: (), applied=applied, drifted=lambda name: None
    )

    def run(
        bench: PaperBench,
        plan: SweepPlan,
        done: Done | None = None,
        stop_after: int | None = None,
    ) -> list[SweepEvent]:
        stop = threading.Event()
        monkeypatch.setattr(runner, "measure_run", bench.measure)
        monkeypatch.setattr(runner, "check_models", lambda plan, meter, files: ModelCheck())
        monkeypatch.setattr(runner, "choose_meter", lambda *_: meter_of(rail("meter", "wall", 0.0)))
        monkeypatch.setattr(runner, "watched_meter", lambda meter, _: meter)
        events: list[SweepEvent] = []
        for event in runner.run_sweep(plan, "s", host, done, stop):
            events.append(event)
            if isinstance(event, RunFinished) and event.index == stop_after:
                stop.set()
        return events

    return run


def plan_of(**changes: object) -> SweepPlan:
    return SweepPlan(**{"models": ("m",), "threads": (1, 2), "until_percent": 5.0, **changes})  # type: ignore[arg-type]


def noisy_at_two_threads(request: RunRequest) -> float:
    return 0.06 if request.point.threads == 2 else 0.0001


def made(events: list[SweepEvent]) -> list[RunFinished]:
    return [event for event in events if isinstance(event, RunFinished)]


def test_only_what_is_not_known_well_enough_is_repeated_until_it_is(carried_out):
    bench = PaperBench(noisy_at_two_threads)
    events = carried_out(bench, plan_of())
    count = Counter(event.run.point.threads for event in made(events))
    assert count[1] == 3
    assert 3 < count[2] < MOST_REPEATS_UNTIL
    repeats = [request.repeat for request in bench.requests if request.point.threads == 2]
    assert repeats == list(range(count[2]))
    last = events[-1]
    assert isinstance(last, SweepFinished)
    assert not last.stopped
    assert last.valid_count == len(made(events))


def test_the_count_grows_before_each_block_and_every_run_has_its_number(carried_out):
    events = carried_out(PaperBench(noisy_at_two_threads), plan_of())
    assert isinstance(events[0], SweepStarted)
    assert events[0].run_count == 6
    wanted, seen = 6, 0
    for event in events[1:-1]:
        if isinstance(event, SweepExtended):
            assert seen == wanted
            wanted += 1
            assert event.run_count == wanted
            assert event.detail.startswith(f"Repeat {wanted - 3} of 1 point whose img/s/W is known to ±")
            assert event.detail.endswith("at worst, because ±5 % are wanted.")
        elif isinstance(event, RunStarted):
            seen += 1
            assert (event.index, event.run_count) == (seen, wanted)
    assert seen == wanted


def test_a_point_has_no_more_repeats_than_the_plan_allows(carried_out):
    plan = plan_of(until_percent=0.5)
    events = carried_out(PaperBench(noisy_at_two_threads), plan)
    assert Counter(event.run.point.threads for event in made(events)) == {1: 3, 2: plan.most_repeats}


def test_what_no_repeat_can_mend_is_not_repeated(carried_out):
    events = carried_out(PaperBench(noisy_at_two_threads, spread=0.2), plan_of())
    assert len(made(events)) == 6
    assert not any(isinstance(event, SweepExtended) for event in events)


def test_without_the_wish_a_sweep_has_the_runs_of_its_plan(carried_out):
    assert len(made(carried_out(PaperBench(noisy_at_two_threads), plan_of(until_percent=0.0)))) == 6


@pytest.mark.parametrize("stop_after", [2, 6, 8])
def test_a_sweep_that_is_told_to_stop_says_that_it_is_not_at_its_end(carried_out, stop_after):
    plan = plan_of(until_percent=0.5)
    events = carried_out(PaperBench(noisy_at_two_threads), plan, stop_after=stop_after)
    assert len(made(events)) == stop_after
    assert events[-1].stopped


def test_told_to_stop_after_its_last_run_it_is_at_its_end(carried_out):
    events = carried_out(PaperBench(lambda _: 0.0001), plan_of(), stop_after=6)
    assert not events[-1].stopped


def test_a_restarted_sweep_makes_no_repeat_twice(carried_out):
    plan = plan_of(threads=(2,))
    (point,) = plan.points()
    done: Done = {(point.id, repeat): {} for repeat in (0, 1, 2, 3, 5)}
    bench = PaperBench(noisy_at_two_threads)
    events = carried_out(bench, plan, done=done)
    repeats = [request.repeat for request in bench.requests]
    assert not {(point.id, repeat) for repeat in repeats} & set(done)
    assert repeats[:2] == [4, 6]
    assert not events[-1].stopped


def test_every_run_is_told_how_warm_the_first_one_of_its_mode_began(carried_out):
    bench = PaperBench(lambda _: 0.0001)
    carried_out(bench, plan_of(modes=("fast", "slow")))
    first: dict[str, float] = {}
    by_mode: defaultdict[str, list[float | None]] = defaultdict(list)
    for place, request in enumerate(bench.requests):
        by_mode[request.point.mode].append(request.like_c)
        first.setdefault(request.point.mode, 40.0 + place)
    assert set(by_mode) == {"fast", "slow"}
    for mode, seen in by_mode.items():
        assert seen[0] is None
        assert set(seen[1:]) == {first[mode]}


@pytest.mark.parametrize("zones", [0, 1])
def test_a_device_without_zones_is_not_said_to_wait_for_them(carried_out, tmp_path, zones):
    if zones:
        ZoneTree(tmp_path, ("CPU-therm", "40000"))
    started = carried_out(PaperBench(lambda _: 0.0001), plan_of(cool_down_s=100.0))[0]
    waits_s = started.longest_s - started.expected_s - 6 * 9.0
    assert waits_s == pytest.approx(zones * (6 * 100.0 + 3 * 2.2), abs=0.1)


def test_an_impossible_width_is_refused_before_anything_is_measured(carried_out, monkeypatch):
    bench = PaperBench(noisy_at_two_threads)
    with pytest.raises(PowerlabError, match="a percentage above 0"):
        carried_out(bench, plan_of(until_percent=-1.0))
    assert bench.requests == []
