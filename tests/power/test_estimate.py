"""The estimate: a stated model, and the word that goes with it."""

from __future__ import annotations

import platform

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel
from powerlab.power.sampling.recorder import Recorder
from powerlab.power.sources.estimate import RULES, Estimate, ProcessorTime, Rule, estimated_energy_j, parse_proc_stat
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


def test_a_recorded_estimate_lies_between_idle_and_peak_of_this_host() -> None:
    with Recorder(Sysroot(), ["estimate:host"], 0.005) as recorder:
        sum(index * index for index in range(3_000_000))
        (trace,) = recorder.stop()
    assert (trace.value[1:] >= trace.value[:-1]).all()
    processors = parse_proc_stat(Sysroot().read("/proc/stat"), 100).processors
    rule = RULES.get(platform.machine(), RULES["x86_64"])
    seconds = (trace.time_ns[-1] - trace.time_ns[0]) * 1e-9
    power_w = (trace.value[-1] - trace.value[0]) / seconds
    # /proc/stat counts in ticks of 10 ms a processor: one more or fewer at either end.
    slack_w = 4 * processors * trace.rail.resolution / seconds
    assert rule.idle_w(processors) - slack_w <= power_w <= rule.peak_w(processors) + slack_w
