"""The estimate: a stated model, and the word that goes with it."""

from __future__ import annotations

import math
import platform
import random
import statistics
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources import estimate
from powerlab.power.sources.estimate import (
    RULES,
    UPDATE_PERIOD_S,
    Estimate,
    ProcessorTime,
    Rule,
    estimated_energy_j,
    parse_proc_stat,
)
from powerlab.sysroot import Sysroot

RULE = Rule(2.0, 1.0, 4.0, 3.0)


@given(st.integers(1, 512), st.floats(0, 1), st.floats(1, 1e6))
def test_power_lies_between_idle_and_peak(processors: int, utilisation: float, seconds: float) -> None:
    for rule in RULES.values():
        busy = ProcessorTime(processors, utilisation * processors * seconds)
        power_w = estimated_energy_j(rule, seconds, busy) / seconds
        expected = rule.idle_w(processors) + (rule.peak_w(processors) - rule.idle_w(processors)) * utilisation
        assert power_w == pytest.approx(expected)
        assert 0 < rule.idle_w(processors) < rule.peak_w(processors)


def test_model_by_hand() -> None:
    """4 processors: 6 W idle, 16 W at the peak; 10 s, half busy."""
    assert estimated_energy_j(RULE, 10.0, ProcessorTime(4, 20.0)) == pytest.approx(110.0)


def test_the_rail_says_that_it_is_estimated() -> None:
    probe = Estimate().probe(Sysroot())
    (rail,) = probe.rails
    assert rail.provenance is Provenance.ESTIMATED
    assert rail.quantity is RailQuantity.ENERGY
    assert rail.relative_error == 0.6
    assert "not a measurement" in probe.detail
    assert "60%" in probe.detail


def test_without_proc_stat_there_is_no_estimate(tmp_path: object) -> None:
    sysroot = Sysroot(tmp_path)  # type: ignore[arg-type]
    assert Estimate().probe(sysroot).availability is Availability.ABSENT
    assert not Estimate().channels(sysroot)


def test_a_broken_proc_stat_is_an_os_error_while_recording(tmp_path: object) -> None:
    sysroot = Sysroot(tmp_path)  # type: ignore[arg-type]
    stat = sysroot.path("/proc/stat")
    stat.parent.mkdir()
    stat.write_text("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3 4\n")
    (channel,) = Estimate().channels(sysroot)
    assert isinstance(channel, PolledChannel)
    assert channel.read() > 0
    stat.write_text("nothing\n")
    with pytest.raises(OSError, match="processor times"):
        channel.read()


class TickingHost:
    """A host under a constant load whose ``/proc/stat`` counts whole ticks of 10 ms, as a kernel does."""

    def __init__(self, sysroot: Sysroot, processors: int, busy_processors: float, system_share: float) -> None:
        self.now_s = 1000.0
        self._processors, self._busy, self._system_share = processors, busy_processors, system_share
        self._stat = sysroot.path("/proc/stat")
        self._stat.parent.mkdir(parents=True, exist_ok=True)

    def monotonic(self) -> float:
        return self.now_s

    def at(self, time_s: float) -> None:
        """Move to a moment."""
        self.now_s = time_s
        busy_ticks = time_s * self._busy * 100
        system = math.floor(busy_ticks * self._system_share)
        user, idle = math.floor(busy_ticks * (1 - self._system_share)), math.floor(time_s * self._processors * 100)
        lines = [f"cpu  {user} 0 {system} {idle - user - system} 0 0 0 0 0 0"]
        lines += [f"cpu{number} 0 0 0 0 0 0 0 0 0 0" for number in range(self._processors)]
        self._stat.write_text("\n".join(lines) + "\n")


def drawn_w(host: TickingHost, sysroot: Sysroot, period_s: float, seed: int) -> list[float]:
    """Return the powers between readings that come a little late, as a thread's do."""
    (channel,) = Estimate().channels(sysroot)
    assert isinstance(channel, PolledChannel)
    late = random.Random(seed)
    readings = []
    for number in range(round(5 / period_s)):
        host.at(1000 + number * period_s + late.uniform(0, 0.05 * period_s))
        readings.append((host.now_s, channel.read()))
    return [(then_j - j) / (then_s - s) for (s, j), (then_s, then_j) in pairwise(readings)]


@pytest.mark.parametrize(("processors", "busy"), [(2, 1.0), (2, 2.0), (4, 1.0), (8, 3.7), (64, 16.0)])
def test_a_constant_load_draws_a_level_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int, busy: float
) -> None:
    sysroot = Sysroot(tmp_path)
    host = TickingHost(sysroot, processors, busy, system_share=0.07)
    monkeypatch.setattr(estimate, "time", host)
    host.at(1000.0)
    (channel,) = Estimate().channels(sysroot)
    rule = RULES.get(platform.machine(), RULES["x86_64"])
    idle_w, peak_w = rule.idle_w(processors), rule.peak_w(processors)
    true_w = idle_w + (peak_w - idle_w) * busy / processors

    found_w = drawn_w(host, sysroot, channel.rail.update_period_s, seed=1)
    assert statistics.mean(found_w) == pytest.approx(true_w, rel=0.005), "energy is right"
    assert statistics.pstdev(found_w) <= 0.04 * true_w
    assert all(abs(watts - true_w) <= 0.11 * true_w for watts in found_w), "two fields, each a tick off"
    if busy == 1.0:
        tick_w = drawn_w(host, sysroot, 0.01, seed=1)
        assert statistics.pstdev(tick_w) > 3 * statistics.pstdev(found_w), "a reading a tick would be a square wave"


def test_it_is_read_once_a_period() -> None:
    with Recorder(Sysroot(), ["estimate:host"], 0.005) as recorder:
        time.sleep(0.55)
        (trace,) = recorder.stop()
    assert 2 <= trace.value.size <= 7
    assert trace.rail.update_period_s == UPDATE_PERIOD_S


def test_a_recorded_estimate_lies_between_idle_and_peak_of_this_host() -> None:
    with Recorder(Sysroot(), ["estimate:host"], 0.005) as recorder:
        end = time.monotonic() + 5 * UPDATE_PERIOD_S
        while time.monotonic() < end:
            sum(index * index for index in range(10_000))
        (trace,) = recorder.stop()
    assert trace.value.size >= 2
    assert (trace.value[1:] >= trace.value[:-1]).all()
    processors = parse_proc_stat(Sysroot().read("/proc/stat"), 100).processors
    rule = RULES.get(platform.machine(), RULES["x86_64"])
    seconds = (trace.time_ns[-1] - trace.time_ns[0]) * 1e-9
    power_w = (trace.value[-1] - trace.value[0]) / seconds
    # /proc/stat counts in ticks of 10 ms a processor: one more or fewer at either end.
    slack_w = 4 * processors * trace.rail.resolution / seconds
    assert rule.idle_w(processors) - slack_w <= power_w <= rule.peak_w(processors) + slack_w
