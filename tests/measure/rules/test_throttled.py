"""A device that was slowed down: a flag on the run, on the baseline too, and what looking at it all cost."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.validity import ENERGY_RULES
from powerlab.measure import run
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.recording import rails
from powerlab.measure.recording.background_load import BackgroundLoad
from powerlab.measure.recording.rails import IdleBaseline, Meter, Recording, idle_baseline
from powerlab.measure.run import RunRequest, measure_run
from powerlab.measure.validity import Evidence, judge
from powerlab.measure.worker.messages import Measure
from powerlab.sysroot import Sysroot
from powerlab.throttling import guard

HOT = "the thermal zone CPU-therm reached 87.5 °C"
PLAN = SweepPlan(models=("good",), threads=(1,), batch_sizes=(4,), warm_up_s=0.0)
ENERGY = TotalEnergy(energy_j=8.0, duration_s=2.0, parts=(), provenance=Provenance.MEASURED)


@pytest.fixture
def meter(make_rail, tmp_path) -> Meter:
    rail = make_rail("VDD_IN")
    total = TotalFormula(rails=(rail.key,), scope="all")
    return Meter(sysroot=Sysroot(tmp_path), total=total, rails=(rail,), sample_period_s=0.01)


@pytest.fixture
def evidence(meter, make_trace) -> Evidence:
    return Evidence(
        window_ns=(1_000_000_000, 6_000_000_000),
        inference_count=200,
        total=meter.total,
        traces=(make_trace(np.arange(0, 7, 0.01), np.full(700, 12.0), meter.rails[0]),),
        sample_period_s=0.01,
    )


class FakeGuard(guard.Guard):
    """A guard whose watches say one sentence."""

    def __init__(self, sysroot: Sysroot) -> None:
        super().__init__(sysroot, ())

    def finish(self) -> tuple[str, ...]:
        super().finish()
        self.core_share = 0.001
        return (HOT,)


class SteadyRecorder:
    """A recorder that finds 12 W at all times."""

    core_share = 0.002

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def stop(self):
        now_s = time.monotonic()
        times = np.linspace(now_s - 10, now_s, 1001)
        return (self.make_trace(times, np.linspace(11.0, 13.0, 1001), self.rail),)


class FakeWorker:
    """A worker that times fifty inferences of a tenth of a millisecond."""

    pid = None

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def load(self, _: object) -> None:
        pass

    def warm_up(self, _: float) -> float:
        return 0.001

    def kill(self) -> None:
        pytest.fail("a run without limits of temperature was ended for its heat")

    def measure(self, request: Measure) -> TimedInferences:
        starts = time.monotonic_ns() + np.arange(50, dtype=np.int64) * 100_000
        time.sleep(0.005 + request.margin_s)
        return TimedInferences(start_ns=starts, end_ns=starts + 100_000)


@pytest.fixture
def pretended(monkeypatch, make_trace, meter):
    """Let worker, recorder and guard be pretended; everything between them is real."""
    monkeypatch.setattr(SteadyRecorder, "make_trace", staticmethod(make_trace), raising=False)
    monkeypatch.setattr(SteadyRecorder, "rail", meter.rails[0], raising=False)
    monkeypatch.setattr(rails, "Recorder", SteadyRecorder)
    monkeypatch.setattr(rails, "Guard", FakeGuard)
    monkeypatch.setattr(run, "Guard", FakeGuard)
    monkeypatch.setattr(run, "Worker", FakeWorker)
    monkeypatch.setattr(BackgroundLoad, "cores", lambda _: 0.0)


def request_of(meter: Meter, idle: IdleBaseline | None) -> RunRequest:
    return RunRequest(
        sweep_id="s", plan=PLAN, point=PLAN.points()[0], repeat=0, meter=meter, idle=idle, drifted=lambda: None
    )


def test_an_untroubled_run_has_no_finding(evidence):
    assert judge(evidence) == ()


def test_every_sentence_of_the_watches_is_a_flag(evidence):
    findings = judge(replace(evidence, throttled=(HOT, "the clocks were low")))
    assert [(finding.rule, finding.verdict, finding.detail) for finding in findings] == [
        ("throttled", Verdict.FLAGGED, HOT),
        ("throttled", Verdict.FLAGGED, "the clocks were low"),
    ]
    assert "throttled" not in ENERGY_RULES


def test_a_throttled_baseline_flags_the_runs_that_use_it(evidence):
    (finding,) = judge(replace(evidence, idle_throttled=(HOT,)))
    assert finding.detail == f"while idle power was measured: {HOT}"
    assert finding.verdict is Verdict.FLAGGED


def test_the_idle_baseline_is_watched(meter, pretended):
    baseline = idle_baseline(meter, 0.3)
    assert baseline is not None
    assert baseline.throttled == (HOT,)


def test_a_run_is_watched_and_says_what_sampling_cost(meter, pretended):
    found = measure_run(
        request_of(meter, IdleBaseline(energy=ENERGY, window_ns=(0, 2_000_000_000), throttled=("it was slow",)))
    ).run
    said = [finding.detail for finding in found.findings if finding.rule == "throttled"]
    idle_after = f"while idle power was measured: {HOT}"
    assert said == [HOT, "while idle power was measured: it was slow", idle_after]
    cost = found.metric("sampling_core_percent")
    assert cost is not None
    assert cost.value == pytest.approx(0.3)
    assert cost.provenance is Provenance.MEASURED


def test_a_run_without_power_is_watched_too(meter, pretended):
    found = measure_run(request_of(replace(meter, total=None, rails=()), None)).run
    assert HOT in [finding.detail for finding in found.findings]
    assert found.metric("sampling_core_percent").value == pytest.approx(0.1)


def test_what_sampling_cost_is_known_of_a_recording_that_failed_too(meter, pretended, monkeypatch):
    def broken(_: SteadyRecorder):
        raise RuntimeError("the sensor went up in smoke")

    monkeypatch.setattr(SteadyRecorder, "stop", broken)
    with Recording(meter) as recording:
        assert recording.core_share == 0
        assert recording.finish() == ()
    assert recording.core_share == 0.002
