"""Sweeps that are searched, with runs on paper: how they are counted, when they end, what they do about failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace

import pytest

from paper_grid import PLAN, figure, run_of
from paper_runs import meter_of, rail
from powerlab.analysis.searched import in_contest, runs_in_contest, search_notes, set_aside
from powerlab.analysis.summary import searched_figures, summarise
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.order import Done
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import SEARCH_GOALS, SweepPlan
from powerlab.measure.run import Measured, RunRequest
from powerlab.sweep import runner
from powerlab.sweep.events import RunFinished, RunStarted, SearchEnded, SweepEvent, SweepFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.model_check import ModelCheck
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign

MOST = 3 * len(PLAN.points())


@pytest.fixture
def carried_out(monkeypatch, tmp_path: Path) -> Callable[..., list[SweepEvent]]:
    monkeypatch.setattr(Host, "device", lambda self: SimpleNamespace(name="bench", core_count=8))
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state", name="bench")
    applied: list[str] = []

    def run(
        plan: SweepPlan, *, stop_after: int | None = None, broken_mode: str = "", done: Done | None = None
    ) -> list[SweepEvent]:
        @contextmanager
        def set_mode(name: str) -> Iterator[None]:
            if name == broken_mode:
                raise PowerlabError(f"{name} is refused.")
            applied.append(name)
            yield

        host.controller = SimpleNamespace(  # type: ignore[assignment]
            modes=lambda: (CURRENT_MODE, *(PowerMode(name=name) for name in plan.modes if name != "current")),
            find=lambda name: None,
            recover=lambda: (),
            applied=set_mode,
            drifted=lambda name: None,
        )
        stop = threading.Event()

        def measure(request: RunRequest) -> Measured:
            return Measured(run=run_of(request.point, request.repeat))

        monkeypatch.setattr(runner, "measure_run", measure)
        monkeypatch.setattr(runner, "check_models", lambda plan, meter, files: ModelCheck())
        outputs = SimpleNamespace(words="", of=lambda _: None, accuracy_of=lambda _: None)
        monkeypatch.setattr(runner, "check_outputs", lambda plan, meter, files: outputs)
        monkeypatch.setattr(runner, "choose_meter", lambda *_: meter_of(rail("meter", "wall", 0.0)))
        monkeypatch.setattr(runner, "watched_meter", lambda meter, _: meter)
        monkeypatch.setattr(runner, "calibrated_meter", lambda meter, rails, device: meter)
        events: list[SweepEvent] = []
        for event in runner.run_sweep(plan, "s", host, done, stop):
            events.append(event)
            if isinstance(event, RunFinished) and event.index == stop_after:
                stop.set()
        return events

    return run


def searched(**changes: object) -> SweepPlan:
    fields = {name: getattr(PLAN, name) for name in ("models", "threads", "batch_sizes", "modes")}
    return SweepPlan(**{**fields, "search_percent": 1.0, **changes})  # type: ignore[arg-type]


def made(events: list[SweepEvent]) -> list[Run]:
    return [event.run for event in events if isinstance(event, RunFinished)]


def test_a_search_ends_by_itself_and_says_how_much_it_measured_and_why_no_more(carried_out):
    plan = searched()
    events = carried_out(plan)
    runs = made(events)
    started, ended, last = events[0], events[-2], events[-1]
    assert isinstance(started, SweepStarted)
    assert isinstance(ended, SearchEnded)
    assert isinstance(last, SweepFinished)
    assert started.run_count == MOST > 3 * len(runs) == 3 * ended.run_count
    assert not last.stopped
    points = len({run.point.id for run in runs})
    assert ended.detail == (
        f"{points} of {MOST // 3} points measured, {len(runs)} runs of {MOST}; stopped because no other point is "
        "likely to be more than 1 % better in latency, throughput or efficiency (95 % confidence)."
    )
    for goal in SEARCH_GOALS:
        best = max(figure(point, goal) for point in PLAN.points())
        assert max(figure(run.point, goal) for run in runs) >= 0.99 * best


def test_runs_are_counted_up_to_what_the_plan_may_take(carried_out):
    indices = [(event.index, event.run_count) for event in carried_out(searched()) if isinstance(event, RunStarted)]
    assert indices == [(index, MOST) for index in range(1, len(indices) + 1)]


def test_one_goal_takes_fewer_runs_than_all(carried_out):
    assert len(made(carried_out(searched(search_goals=("latency",))))) < len(made(carried_out(searched())))


def test_told_to_stop_it_is_not_at_its_end(carried_out):
    events = carried_out(searched(), stop_after=4)
    assert len(made(events)) == 4
    assert events[-1].stopped
    assert not any(isinstance(event, SearchEnded) for event in events)


def test_continued_it_goes_on_as_if_it_had_not_been_broken_off(carried_out):
    whole, first = made(carried_out(searched())), made(carried_out(searched(), stop_after=7))
    known = {(run.point.id, run.repeat): searched_figures(run) for run in first}
    events = carried_out(searched(), done=known)
    assert first + made(events) == whole
    ended = next(event.detail for event in events if isinstance(event, SearchEnded))
    assert f"{len(whole)} runs of {MOST}" in ended


def test_without_figures_of_what_was_done_it_searches_among_the_rest(carried_out):
    first = made(carried_out(searched(), stop_after=7))
    rest = made(carried_out(searched(), done={(run.point.id, run.repeat): {} for run in first}))
    assert not {(run.point.id, run.repeat) for run in first} & {(run.point.id, run.repeat) for run in rest}


def test_a_mode_that_cannot_be_set_fails_one_run_and_is_not_tried_again(carried_out):
    runs = made(carried_out(searched(), broken_mode="cpu-max=600000kHz"))
    failed = [run for run in runs if run.verdict is Verdict.FAILED]
    assert [run.point.mode for run in failed] in ([], ["cpu-max=600000kHz"])
    (everything,) = (made(carried_out(searched(modes=("cpu-max=600000kHz",)), broken_mode="cpu-max=600000kHz")),)
    assert [run.verdict for run in everything] == [Verdict.FAILED]


def test_runs_in_one_mode_share_a_visit(carried_out):
    runs = made(carried_out(searched()))
    stays = [mode for mode, _ in groupby(run.point.mode for run in runs)]
    assert len(stays) < len(runs)


def test_the_answer_compares_what_was_repeated_and_a_full_grid_all(carried_out):
    plan = searched()
    runs = made(carried_out(plan))
    kept = in_contest(summarise(runs), plan)
    assert 2 <= len(kept) < len(summarise(runs))
    assert {summary.run_count for summary in kept} == {plan.repeats}
    assert {run.point for run in runs_in_contest(runs, plan)} == {summary.point for summary in kept}
    assert runs_in_contest(runs, PLAN) == runs
    left = {summary.point for summary in summarise(runs)} - {summary.point for summary in kept}
    assert set_aside(runs, plan) == dict.fromkeys(plan.goals_to_search, left)
    assert set_aside(runs, PLAN) == {}
    assert search_notes(runs, PLAN) == []
    assert search_notes(runs, plan)[0].startswith("Search for latency, throughput, efficiency (by more than 1 %): ")
    assert "unlikely" in search_notes(runs, plan, interrupted=False)[0]
    assert "another one may well be better" in search_notes(runs, plan, interrupted=True)[0]


def test_what_proposed_modes_gain_is_said_beside_the_best_named_one(carried_out):
    clocks = ("cpu-max=1000000kHz", "cpu-max=1500000kHz")
    plan = searched(modes=("current", *clocks), proposed_modes=clocks)
    notes = search_notes(made(carried_out(plan)), plan)
    (gain,) = [line for line in notes if line.startswith("Efficiency")]
    assert "(proposed) gains" in gain
    assert "mode current" in gain
    (latency,) = [line for line in notes if line.startswith("Latency")]
    assert latency.startswith("Latency: no proposed mode gains on m, batch 1, 8 threads, mode current")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"search_goals": ("speed",)}, "the goal 'speed' is not known; choose from: latency, throughput, efficiency."),
        ({"until_percent": 5.0}, "leave one out"),
        ({"search_percent": -1.0}, "give a percentage above 0"),
        ({"proposed_modes": ("cores=3",)}, "the proposed mode 'cores=3' is not among the plan's modes"),
        ({"batch_sizes": tuple(range(1, 400))}, "a search looks at 5000 points at most and the plan has 9576"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_before_anything_is_measured(carried_out, changes, sentence):
    with pytest.raises(PowerlabError, match=sentence.replace("(", r"\(")):
        carried_out(searched(**changes))
