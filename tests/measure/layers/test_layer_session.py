"""The order of events when layers are measured, with a worker that is played."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.layers import session
from powerlab.measure.layers.messages import WHOLE, FindCeilings, LoadLayers, Roofs, Steps
from powerlab.measure.layers.session import (
    WHOLE_WINDOWS,
    LayersFinished,
    LayersRequest,
    LayersStarted,
    WindowDone,
    measure_layers,
)
from powerlab.measure.layers.window import MOST_WINDOWS, StepWindow
from powerlab.measure.recording.rails import Meter
from powerlab.measure.worker.process import WorkerError
from powerlab.sysroot import Sysroot
from tests.measure.true_power import rail_of

STEPS = Steps(
    tier="avx2",
    kernels=("a", "b"),
    labels=("first", "second"),
    operators=("FusedConv", ""),
    nodes=(("first",), ()),
    shapes=((1, 2), (1, 2)),
    flops=(10, 0),
    bytes_moved=(10, 10),
)
RAIL = rail_of(RailQuantity.POWER, update_period_s=0.1)


class PlayedWorker:
    """Answers what a worker answers; ``log`` holds what it was asked, ``ended`` whether it was let go."""

    pid = 1
    failure: Exception | None = None

    def __init__(self, cores: frozenset[int]) -> None:
        self.cores = cores
        type(self).log = []
        type(self).ended = False

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        type(self).ended = True

    def ask(self, request, timeout_s, expected):
        type(self).log.append(request)
        if self.failure is not None:
            raise self.failure
        return STEPS if isinstance(request, LoadLayers) else Roofs(peak_gflops=9.0, memory_gb_per_s=3.0)


@pytest.fixture
def played(monkeypatch):
    """Let a session find the played worker, and windows that take no time."""

    class Worker(PlayedWorker):
        pass

    def window(worker, meter, step, duration_s):
        assert isinstance(worker, Worker)
        columns = 2 if step == WHOLE else 0
        return StepWindow(
            step=step,
            window_ns=(0, 1),
            each_ns=np.full(4, 2000.0 if step == WHOLE else 1000.0),
            step_ns=np.full((4, columns), 1000.0),
            energy=None,
            findings=(),
            steady=True,
            windows=1,
        )

    idles = []
    monkeypatch.setattr(session, "Worker", Worker)
    monkeypatch.setattr(session, "join", lambda sysroot, pid: None)
    monkeypatch.setattr(session, "steady_window", window)
    monkeypatch.setattr(session, "idle_baseline", lambda meter, seconds: idles.append(seconds))
    Worker.idles = idles
    return Worker


def request_of(total: bool = True, **changes: object) -> LayersRequest:
    formula = TotalFormula(rails=(RAIL.key,), scope="all") if total else None
    fields: dict[str, object] = {
        "point": Point(workload=Workload(model="net.onnx", batch_size=3), threads=1, mode="current"),
        "device_name": "board",
        "meter": Meter(sysroot=Sysroot(), total=formula, rails=(RAIL,) if total else (), sample_period_s=0.01),
        "no_power": "" if total else "no sensor",
        "window_s": 2.0,
        "idle_s": 3.0,
        "seed": 4,
        "drifted": lambda: None,
    }
    return LayersRequest(**{**fields, **changes})


def started(**changes: object) -> LayersStarted:
    return next(iter(measure_layers(request_of(**changes))))


def test_everything_is_said_in_its_order(played):
    first, *middle, last = measure_layers(request_of())
    assert (first.layer_count, first.window_count) == (2, 2 + WHOLE_WINDOWS)
    assert [event.number for event in middle if isinstance(event, WindowDone)] == [1, 2, 3, 4, 5]
    assert sorted(event.name for event in middle) == ["first", "second", *["the whole"] * WHOLE_WINDOWS]
    assert isinstance(last, LayersFinished)
    assert [layer.name for layer in last.profile.layers] == ["first", "second"]
    assert played.ended


def test_the_worker_gets_the_model_and_is_asked_for_its_ceilings(played):
    list(measure_layers(request_of()))
    load, ceilings = played.log
    assert (load.model, load.batch_size, load.threads, load.seed) == ("net.onnx", 3, 1, 4)
    assert isinstance(ceilings, FindCeilings)


def test_an_idle_baseline_comes_before_and_after(played):
    list(measure_layers(request_of()))
    assert played.idles == [3.0, 3.0]


def test_a_simulated_board_is_not_asked_for_ceilings(played, tmp_path):
    from powerlab.boards.simulator import create_tree

    create_tree("jetson-orin-nano", tmp_path / "board")
    request = request_of()
    *_, last = measure_layers(replace(request, meter=replace(request.meter, sysroot=Sysroot(tmp_path / "board"))))
    assert [type(one) for one in played.log] == [LoadLayers]
    assert last.profile.roof is None


@pytest.mark.parametrize(("short", "long"), [(1.0, 2.0), (0.1, 10.0)])
def test_longer_windows_take_longer_by_as_much_a_window(played, short, long):
    one, other = started(window_s=short), started(window_s=long)
    assert other.expected_s - one.expected_s == pytest.approx((long - short) * one.window_count)
    assert other.longest_s - one.longest_s == pytest.approx(MOST_WINDOWS * (long - short) * one.window_count)
    assert one.longest_s > one.expected_s


def test_without_power_there_is_no_baseline_to_wait_for(played):
    assert started(total=False).expected_s < started().expected_s - 6.0


@pytest.mark.parametrize("failure", [WorkerError("it died"), PowerlabError("there is no such model.")])
def test_a_worker_that_fails_is_let_go(played, failure):
    played.failure = failure
    with pytest.raises(type(failure)):
        list(measure_layers(request_of()))
    assert played.ended


def test_who_stops_listening_ends_the_worker(played):
    events = measure_layers(request_of())
    next(events)
    assert not played.ended
    events.close()
    assert played.ended


def test_a_mode_that_drifted_is_in_the_profile(played):
    *_, last = measure_layers(request_of(drifted=lambda: "the limit fell"))
    assert last.profile.findings[0].detail == "the limit fell"


def test_two_profiles_have_two_names_and_the_same_order(played):
    (*one, first), (*other, second) = (list(measure_layers(request_of())) for _ in range(2))
    assert first.profile.id != second.profile.id
    assert [event.name for event in one[1:]] == [event.name for event in other[1:]]
