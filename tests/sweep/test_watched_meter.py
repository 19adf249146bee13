"""A sweep looks at its sensors before it believes what is said of them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.power import POWER_QUANTITIES, TotalFormula
from powerlab.domain.run import Verdict
from powerlab.measure.recording.rails import Meter
from powerlab.power.registry import channels_of
from powerlab.sweep.events import RunFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.meter import LONGEST_WATCH_S, SHORTEST_WATCH_S, watch_s, watched_meter
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

PERIOD_S = 0.05
KEYS = ("hwmon:CPU power", "hwmon:IO power")


@pytest.fixture
def xgene(tmp_path: Path) -> Iterator[Sysroot]:
    """A server whose driver states no update period; its processor's sensor has one, and the other one stands still."""
    chip = tmp_path / "machine/sys/class/hwmon/hwmon0"
    chip.mkdir(parents=True)
    for name, text in {
        "name": "apm_xgene",
        "power1_label": "CPU power",
        "power1_input": "22040000",
        "power2_label": "IO power",
        "power2_input": "9000000",
    }.items():
        (chip / name).write_text(f"{text:12}\n")
    handle = os.open(chip / "power1_input", os.O_WRONLY)
    stop = threading.Event()

    def move() -> None:
        count = 0
        while not stop.wait(PERIOD_S):
            count += 1
            os.pwrite(handle, f"{22040000 + count % 7 * 1000:<12d}\n".encode(), 0)

    thread = threading.Thread(target=move)
    thread.start()
    yield Sysroot(tmp_path / "machine")
    stop.set()
    thread.join()
    os.close(handle)


def meter(sysroot: Sysroot) -> Meter:
    rails = tuple(channel.rail for channel in channels_of(sysroot, KEYS))
    return Meter(sysroot=sysroot, total=TotalFormula(rails=KEYS, scope="both"), rails=rails, sample_period_s=0.01)


def test_the_seen_period_replaces_what_was_not_said_and_a_still_rail_keeps_its_own(xgene):
    before = meter(xgene)
    after = watched_meter(before, 0.6)
    assert [rail.key for rail in after.rails] == list(KEYS)
    assert [rail.update_period_s for rail in before.rails] == [0.0, 0.0]
    assert after.rails[0].update_period_s >= 0.9 * PERIOD_S
    assert after.rails[1] == before.rails[1]
    assert after.margin_s >= 2 * after.rails[0].update_period_s
    assert set(after.lively) == {KEYS[0]}


def test_rails_that_cannot_be_watched_are_left_to_the_runs(xgene):
    before = meter(xgene)
    xgene.path("/sys/class/hwmon/hwmon0/power2_input").unlink()
    assert watched_meter(before, 0.01) is before


def test_a_watch_is_as_long_as_a_window_within_limits():
    assert watch_s(0.0) == SHORTEST_WATCH_S
    assert watch_s(1.0) == 1.0
    assert watch_s(600.0) == LONGEST_WATCH_S


def test_the_seen_period_is_in_every_stored_trace_and_in_what_is_said_of_the_window(make_plan, numpy_engine, xgene):
    host = Host(sysroot=xgene, state_dir=xgene.path("/state"), name="bench")
    plan = make_plan(models=("good",), threads=(1,), duration_s=0.5, warm_up_s=0.0, idle_s=0.0, engines=(numpy_engine,))
    events = list(run_sweep(plan, "s", host))
    assert isinstance(events[0], SweepStarted)
    assert events[0].advice.startswith(f"{KEYS[0]} has a new value every 0.0")
    runs = [event for event in events if isinstance(event, RunFinished)]
    assert len({event.traces[0].rail for event in runs}) == 1
    for event in runs:
        moving, still = (trace for trace in event.traces if trace.rail.quantity in POWER_QUANTITIES)
        assert moving.rail.update_period_s >= 0.9 * PERIOD_S
        assert still.rail.update_period_s == 0.0
        assert np.all(np.diff(moving.time_ns) > 0)
        (finding,) = [finding for finding in event.run.findings if finding.rule == "window-too-short"]
        assert finding.verdict in {Verdict.FLAGGED, Verdict.VOID}
        assert KEYS[0] in finding.detail
