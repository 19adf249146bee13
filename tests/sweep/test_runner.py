"""Sweeps with real workers: what fails is recorded, what is measured is kept, the mode is put back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.domain.order import Done
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.sweep.events import RunFinished, RunStarted, SweepFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot


class RecordingController:
    """Stands in for the mode controller and writes down what is asked of it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.refused: set[str] = set()
        self.drift: str | None = None

    def modes(self) -> tuple[PowerMode, ...]:
        return (CURRENT_MODE, PowerMode(name="fast"), PowerMode(name="slow"))

    def find(self, name: str) -> PowerMode | None:
        return next((mode for mode in self.modes() if mode.name == name), None)

    def recover(self) -> tuple[Setting, ...]:
        self.log.append("recover")
        return ()

    @contextmanager
    def applied(self, name: str) -> Iterator[None]:
        if name in self.refused:
            raise PowerlabError(f"the device refused {name}.")
        self.log.append(f"set {name}")
        try:
            yield
        finally:
            self.log.append(f"restore {name}")

    def drifted(self, name: str) -> str | None:
        return self.drift


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state", name="bench")
    host.controller = RecordingController()  # type: ignore[assignment]
    return host


@pytest.fixture
def quick_plan(make_plan, numpy_engine):
    def make(**changes):
        quick = {
            "models": ("good",),
            "threads": (1,),
            "duration_s": 0.02,
            "warm_up_s": 0.0,
            "idle_s": 0.0,
            "engines": (numpy_engine,),
        }
        return make_plan(**{**quick, **changes})

    return make


def finished(events) -> list[RunFinished]:
    return [event for event in events if isinstance(event, RunFinished)]


def test_the_events_come_in_order_and_count_the_runs(host, quick_plan):
    events = list(run_sweep(quick_plan(batch_sizes=(1, 2)), "sweep-1", host))
    assert isinstance(events[0], SweepStarted)
    assert events[0].run_count == 6
    assert events[0].expected_s > 0
    assert isinstance(events[-1], SweepFinished)
    inner = events[1:-1]
    assert [type(event) for event in inner] == [RunStarted, RunFinished] * 6
    assert [event.index for event in inner] == [index for index in range(1, 7) for _ in "ab"]
    for started, ended in zip(inner[::2], inner[1::2], strict=True):
        assert (started.point, started.repeat) == (ended.run.point, ended.run.repeat)
        assert ended.run.sweep_id == "sweep-1"
        assert ended.run.inference_count >= 10
        assert ended.run.metric("latency_p50_ms").value >= 1
        assert ended.run.metric("latency_p50_ms").provenance is Provenance.MEASURED
    assert len({event.run.id for event in finished(events)}) == 6


def test_cores_that_the_device_has_not_are_refused_before_anything_is_touched(host, quick_plan):
    present = host.sysroot.path("/sys/devices/system/cpu/present")
    present.parent.mkdir(parents=True, exist_ok=True)
    present.write_text("0-3\n")
    with pytest.raises(PowerlabError, match="this device has the cores 0-3"):
        next(run_sweep(quick_plan(cores=("2-5",)), "s", host))
    assert host.controller.log == ["recover"]


def test_cores_that_cannot_be_used_now_fail_their_runs_alone(host, quick_plan):
    runs = [event.run for event in finished(run_sweep(quick_plan(cores=("", "900")), "s", host))]
    assert {run.verdict for run in runs if run.point.cores} == {Verdict.FAILED}
    assert all("the cores 900 cannot be used" in run.findings[0].detail for run in runs if run.point.cores)
    assert Verdict.FAILED not in {run.verdict for run in runs if not run.point.cores}


def test_a_model_whose_worker_dies_fails_alone(host, quick_plan):
    runs = [event.run for event in finished(run_sweep(quick_plan(models=("crash", "good")), "s", host))]
    crashed = [run for run in runs if run.point.workload.model == "crash"]
    assert len(crashed) == 3
    for run in crashed:
        assert run.verdict is Verdict.FAILED
        assert run.metrics == ()
        assert run.window_ns == (0, 0)
        assert [finding.rule for finding in run.findings] == ["worker-failed"]
        assert "exit code 3; its last words: the engine stepped on a rake" in run.findings[0].detail
    good = [run for run in runs if run.point.workload.model == "good"]
    assert len(good) == 3
    assert all(run.verdict is not Verdict.FAILED for run in good)


def test_the_final_counts_add_up(host, quick_plan):
    *events, last = run_sweep(quick_plan(models=("killed", "good")), "s", host)
    verdicts = [event.run.verdict for event in finished(events)]
    assert last.failed_count == verdicts.count(Verdict.FAILED) == 3
    assert last.valid_count + last.flagged_count + last.void_count == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models": ("unreadable", "good")}, "'unreadable' cannot be read"),
        ({"threads": (4096,)}, "lets a sweep use"),
        ({"modes": ("turbo",)}, "no power mode 'turbo'"),
        ({"engines": ("abacus",)}, "choose one of: builtin"),
    ],
)
def test_what_the_user_can_mend_is_refused_before_the_first_event(host, quick_plan, changes, words):
    events = run_sweep(quick_plan(**changes), "s", host)
    with pytest.raises(PowerlabError, match=words):
        next(events)
    assert host.controller.log == ["recover"]


def test_a_model_that_kills_the_checking_worker_does_not_stop_the_sweep(host, quick_plan):
    runs = [event.run for event in finished(run_sweep(quick_plan(models=("dies-loading", "good")), "s", host))]
    assert {run.point.workload.model for run in runs if run.verdict is Verdict.FAILED} == {"dies-loading"}


def test_what_is_done_is_left_out(host, quick_plan):
    plan = quick_plan()
    done: Done = {(plan.points()[0].id, 0): {}, (plan.points()[0].id, 2): {}}
    events = list(run_sweep(plan, "s", host, done=done))
    assert events[0].run_count == 1
    assert [event.run.repeat for event in finished(events)] == [1]


def test_stop_ends_the_sweep_after_the_run_in_progress(host, quick_plan):
    stop = threading.Event()
    seen = []
    for event in run_sweep(quick_plan(modes=("fast", "slow")), "s", host, stop=stop):
        seen.append(event)
        if isinstance(event, RunStarted):
            stop.set()
    assert len(finished(seen)) == 1
    assert isinstance(seen[-1], SweepFinished)
    assert host.controller.log[-1].startswith("restore")


@pytest.mark.campaign
def test_modes_are_set_once_a_block_and_restored_each_time(host, quick_plan):
    list(run_sweep(quick_plan(modes=("fast", "slow"), batch_sizes=(1, 2)), "s", host))
    log = host.controller.log[1:]
    assert len(log) == 12
    for entered, left in zip(log[::2], log[1::2], strict=True):
        assert entered.removeprefix("set ") == left.removeprefix("restore ")


def test_closing_in_the_middle_restores_the_mode(host, quick_plan):
    with closing(run_sweep(quick_plan(modes=("fast",)), "s", host)) as events:
        assert any(isinstance(event, RunStarted) for event in events)
        assert host.controller.log[-1] == "set fast"
    assert host.controller.log[-1] == "restore fast"


def test_a_mode_the_device_refuses_fails_its_runs_and_no_others(host, quick_plan):
    host.controller.refused = {"slow"}
    runs = [event.run for event in finished(run_sweep(quick_plan(modes=("fast", "slow")), "s", host))]
    failed = [run for run in runs if run.verdict is Verdict.FAILED]
    assert {run.point.mode for run in failed} == {"slow"}
    assert len(failed) == 3
    assert failed[0].findings[0].rule == "mode-not-ready"
    assert failed[0].findings[0].detail == "the device refused slow."


def test_a_mode_that_drifted_makes_its_runs_void(host, quick_plan):
    host.controller.drift = "somebody set cpu0 to 800000 kHz."
    for event in finished(run_sweep(quick_plan(), "s", host)):
        assert event.run.verdict is Verdict.VOID
        assert ("mode-drift", host.controller.drift) in {(f.rule, f.detail) for f in event.run.findings}
