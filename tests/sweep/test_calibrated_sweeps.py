"""Sweeps use what `powerlab calibrate` kept of the same board and kernel, and work without it as ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.domain.budget import half_width, interval, of_metric
from powerlab.domain.errors import PowerlabError
from powerlab.measure.lag.calibration import Calibration, keep, place
from powerlab.measure.lag.edges import RailLag
from powerlab.sweep.events import RunFinished
from powerlab.sweep.host import Host
from powerlab.sweep.meter import calibrated_meter, choose_meter
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

LAG_S, LAG_ERROR_S = 0.004, 0.001


@pytest.fixture
def host(rapl_tree: Path) -> Iterator[Host]:
    """A machine without a calibration, before and after."""
    made = Host(sysroot=Sysroot(rapl_tree), state_dir=rapl_tree / "state", name="bench")
    path = place(made.device(), made.sysroot)
    path.unlink(missing_ok=True)
    yield made
    path.unlink(missing_ok=True)


def calibrate(host: Host, **changes: object) -> Path:
    device = host.device()
    rails = choose_meter(host.sysroot, host.capabilities(), 0.01).rails
    found = tuple(RailLag(rail=rail, lag_s=LAG_S, lag_error_s=LAG_ERROR_S, edges=16) for rail in rails)
    fields = {"board": device.board, "kernel": device.kernel, "simulated": False, "made_at": "", "rails": found}
    path = place(device, host.sysroot)
    keep(Calibration(**{**fields, **changes}), path)
    return path


def meter_of(host: Host):
    meter = choose_meter(host.sysroot, host.capabilities(), 0.01)
    return meter, calibrated_meter(meter, meter.rails, host.device())


def test_without_a_calibration_a_meter_stays_as_it_is(host):
    before, after = meter_of(host)
    assert after is before


def test_a_calibration_of_this_machine_is_used(host):
    calibrate(host)
    before, after = meter_of(host)
    assert after.rails == tuple(replace(rail, lag_s=LAG_S, lag_error_s=LAG_ERROR_S) for rail in before.rails)


@pytest.mark.parametrize("changed", [{"kernel": "1.0"}, {"board": "jetson-nano"}, {"simulated": True}])
def test_one_of_another_machine_is_not(host, changed):
    calibrate(host, **changed)
    before, after = meter_of(host)
    assert after is before


def test_a_damaged_one_ends_the_sweep_before_it_begins(host, make_plan, numpy_engine):
    calibrate(host).write_text("{")
    plan = make_plan(models=("good",), threads=(1,), duration_s=0.3, engines=(numpy_engine,))
    with pytest.raises(PowerlabError, match="damaged"):
        next(run_sweep(plan, "s", host))


def test_every_trace_of_a_sweep_states_the_lag_and_the_budget_reckons_with_it(host, make_plan, numpy_engine):
    calibrate(host)
    plan = make_plan(
        models=("good",),
        threads=(1,),
        duration_s=0.3,
        warm_up_s=0.0,
        longest_warm_up_s=0.0,
        idle_s=0.2,
        engines=(numpy_engine,),
    )
    events = [event for event in run_sweep(plan, "s", host) if isinstance(event, RunFinished)]
    recorded = [trace.rail for event in events for trace in event.traces if trace.rail.source == "rapl"]
    assert len(recorded) >= 3
    assert {(rail.lag_s, rail.lag_error_s) for rail in recorded} == {(LAG_S, LAG_ERROR_S)}
    effects = {line.effect for event in events for line in event.run.budget if line.metric == "power_w"}
    assert "lag" in effects
    for event in events:
        for metric in event.run.metrics:
            lines = of_metric(event.run.budget, metric.name)
            if lines:
                low, high = interval(metric.name, metric.value, half_width(lines))
                assert (metric.low, metric.high) == (pytest.approx(low), pytest.approx(high)), metric.name
    assert {"energy_above_idle_per_image_j", "idle_power_w"} <= {line.metric for line in events[-1].run.budget}
