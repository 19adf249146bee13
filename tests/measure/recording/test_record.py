"""A meter that fails is a finding; the idle baseline is measured or absent, never 0 W."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from child_process import ChildProcess
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import TotalFormula
from powerlab.domain.run import Finding, Verdict
from powerlab.measure.recording import background_load, rails
from powerlab.measure.recording.background_load import BackgroundLoad
from powerlab.measure.recording.rails import Meter, Recording, idle_baseline, usable_energy
from powerlab.measure.validity import Evidence, judge
from powerlab.measure.worker.exit_reason import exit_reason, last_line
from powerlab.sysroot import Sysroot


@pytest.fixture
def meter(make_rail, tmp_path) -> Meter:
    rail = make_rail("VDD_IN")
    total = TotalFormula(rails=(rail.key,), scope="all")
    return Meter(sysroot=Sysroot(tmp_path), total=total, rails=(rail,), sample_period_s=0.01)


def test_a_rail_that_is_gone_is_a_failure_in_words_and_no_exception(meter):
    with Recording(meter) as recording:
        assert recording.finish() == ()
    assert "VDD_IN" in recording.failure


class BreakingRecorder:
    """Stands in for a recorder whose sensor breaks while it records."""

    closed = 0
    core_share = 0.002

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> tuple[()]:
        raise PowerlabError("the rail VDD_IN gave not one sample; see `powerlab doctor`.")

    def close(self) -> None:
        BreakingRecorder.closed += 1


def test_a_sensor_that_breaks_meanwhile_is_a_failure_too_and_is_closed(meter, monkeypatch):
    monkeypatch.setattr(rails, "Recorder", BreakingRecorder)
    before = BreakingRecorder.closed
    with Recording(meter) as recording:
        assert recording.finish() == ()
    assert "not one sample" in recording.failure
    assert BreakingRecorder.closed == before + 1
    evidence = Evidence(
        window_ns=(0, 10**9),
        inference_count=50,
        total=meter.total,
        traces=(),
        sample_period_s=0.01,
        power_failure=recording.failure,
    )
    (finding,) = judge(evidence)
    assert finding == Finding(rule="missing-power", verdict=Verdict.VOID, detail=recording.failure)


def test_a_fault_in_a_source_costs_watts_and_not_the_sweep(meter, monkeypatch):
    def faulty(_):
        raise TypeError("the driver's library changed its answer")

    monkeypatch.setattr(BreakingRecorder, "stop", faulty)
    monkeypatch.setattr(rails, "Recorder", BreakingRecorder)
    with Recording(meter) as recording:
        assert recording.finish() == ()
    assert recording.failure == (
        "the power source failed while recording (TypeError: the driver's library changed its answer)"
    )


def test_no_idle_baseline_where_none_is_asked_or_nothing_can_be_read(meter):
    assert idle_baseline(meter, 0.0) is None
    assert idle_baseline(meter, 0.01) is None
    assert idle_baseline(replace(meter, total=None, rails=()), 0.01) is None


def test_the_margin_follows_the_slowest_rail_within_bounds(meter, make_rail):
    assert meter.margin_s == pytest.approx(0.1)
    assert replace(meter, rails=(make_rail(update_period_s=0.3),)).margin_s == pytest.approx(0.6)
    assert replace(meter, rails=(make_rail(update_period_s=60.0),)).margin_s == pytest.approx(2.0)


def test_energy_is_withheld_when_an_energy_rule_says_void_and_only_then(meter, make_trace):
    evidence = Evidence(
        window_ns=(1_000_000_000, 6_000_000_000),
        inference_count=50,
        total=meter.total,
        traces=(make_trace(np.arange(0, 7, 0.01), np.full(700, 12.0), meter.rails[0]),),
        sample_period_s=0.01,
    )

    def energy_with(rule: str, verdict: Verdict):
        return usable_energy(evidence, [Finding(rule=rule, verdict=verdict, detail="")])

    assert usable_energy(evidence, []).power_w == pytest.approx(12)
    assert energy_with("power-gap", Verdict.FLAGGED) is not None
    assert energy_with("mode-drift", Verdict.VOID) is not None
    assert energy_with("power-gap", Verdict.VOID) is None
    assert usable_energy(replace(evidence, total=None), []) is None


def test_the_workers_own_time_is_no_background_load():
    """A busy child that is named as the worker does not count; the same child unnamed does."""
    spin = "import time\nwhile time.process_time() < 0.6: pass\nprint('spun', flush=True)\ninput()\n"
    with ChildProcess([sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        as_worker, as_other = BackgroundLoad(child.pid), BackgroundLoad(os.getpid())
        assert child.stdout.readline() == b"spun\n"
        own, other = as_worker.cores(), as_other.cores()
        child.communicate(b"\n")
    assert 0 <= own < other


def test_niced_others_are_background_and_niced_work_of_ones_own_is_not(monkeypatch):
    class Times:
        user, nice, system, irq, softirq, guest, steal = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0

    clock = [100.0]
    machine, own = Times(), Times()
    monkeypatch.setattr(background_load, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(background_load.psutil, "cpu_times", lambda: machine)
    monkeypatch.setattr(background_load.psutil.Process, "cpu_times", lambda _: own)
    load = BackgroundLoad()
    clock[0], machine.nice, own.user, machine.steal = 110.0, 8.0, 3.0, 5.0
    assert load.cores() == pytest.approx(0.5)


def test_the_idle_baseline_says_how_busy_others_were(meter, monkeypatch, make_trace):
    """A baseline of 12 W on the machine itself, with another process at work."""

    class SteadyRecorder(BreakingRecorder):
        def stop(self):
            now_s = time.monotonic()
            times = np.linspace(now_s - 10, now_s, 1001)
            return (make_trace(times, np.full(1001, 12.0), meter.rails[0]),)

    monkeypatch.setattr(rails, "Recorder", SteadyRecorder)
    monkeypatch.setattr(BackgroundLoad, "cores", lambda _: 0.7)
    idle = idle_baseline(meter, 0.3)
    assert idle.energy.power_w == pytest.approx(12)
    assert idle.background_cores == 0.7
    slept = iter([5.0, 65.0])
    monkeypatch.setattr(rails, "suspended_since_boot_s", lambda: next(slept))
    assert idle_baseline(meter, 0.3) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "SIGKILL (the kernel does that"),
        (-11, "SIGSEGV"),
        (-99, "signal 99"),
        (3, "exit code 3"),
        (0, "exit code 0"),
    ],
)
def test_every_end_has_words(code, words):
    assert words in exit_reason(code, "")
    assert exit_reason(code, "out of cheese").endswith("its last words: out of cheese")


@pytest.mark.parametrize(
    ("printed", "line"), [(b"", ""), (b"\n\n", ""), (b"a\nb\n\n", "b"), (b"x" * 9000, "x" * 300), (b"\xff\n", "\ufffd")]
)
def test_the_last_line_is_found(printed, line, tmp_path):
    path = tmp_path / "output"
    path.write_bytes(printed)
    with path.open("rb") as output:
        assert last_line(output) == line
