"""Whole sweeps with a moving energy counter, on a machine whose power is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from powerlab.analysis.summary import summarise
from powerlab.domain.power import Part, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.sweep.events import RunFinished
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot

TRUE_W = 15.0


@pytest.fixture(scope="module")
def finished(make_plan, numpy_engine, rapl_tree: Path) -> list[RunFinished]:
    host = Host(sysroot=Sysroot(rapl_tree), state_dir=rapl_tree / "state", name="bench")
    plan = make_plan(models=("good",), threads=(1,), duration_s=0.6, warm_up_s=0.0, idle_s=0.4, engines=(numpy_engine,))
    return [event for event in run_sweep(plan, "s", host) if isinstance(event, RunFinished)]


@pytest.mark.campaign
def test_the_known_power_lies_in_every_runs_interval(finished):
    assert len(finished) == 3
    for run in (event.run for event in finished):
        assert run.verdict in {Verdict.VALID, Verdict.FLAGGED}, run.findings
        power = run.metric("power_w")
        assert power.low <= TRUE_W <= power.high
        assert power.high - power.low < 0.5 * TRUE_W
        idle = run.metric("idle_power_w")
        assert idle.low <= TRUE_W <= idle.high
        # No interval: on a busy machine the thread that plays the kernel is later than the kernel's millisecond.
        above = run.metric("energy_above_idle_per_image_j").value
        assert abs(above) < 0.1 * run.metric("energy_per_image_j").value
        images_per_s = run.metric("throughput_img_per_s").value
        assert run.metric("efficiency_img_per_s_per_w").value == pytest.approx(images_per_s / power.value, rel=1e-6)
        assert {metric.provenance for metric in run.metrics} == {Provenance.MEASURED}
        assert run.total.rails == ("rapl:package-0",)


def test_the_traces_hold_the_window_with_a_margin_on_both_sides(finished):
    for event in finished:
        (trace,) = [one for one in event.traces if one.part is Part.RUN and one.rail.quantity is RailQuantity.ENERGY]
        start_ns, end_ns = event.run.window_ns
        assert trace.time_ns[0] < start_ns
        assert trace.time_ns[-1] > end_ns
        assert np.all(np.diff(trace.time_ns) > 0)
        slope_w = (trace.value[-1] - trace.value[0]) / ((trace.time_ns[-1] - trace.time_ns[0]) / 1e9)
        assert slope_w == pytest.approx(TRUE_W, rel=0.1)


def test_the_summary_holds_the_truth_too(finished):
    (summary,) = summarise(event.run for event in finished)
    power = summary.metric("power_w")
    assert power.low <= TRUE_W <= power.high
    assert power.provenance is Provenance.MEASURED


def test_a_counter_that_stands_still_gives_no_watts_but_keeps_the_latency(make_plan, numpy_engine, tmp_path):
    zone = tmp_path / "machine/sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in {"name": "package-0", "energy_uj": "240422366267", "max_energy_range_uj": "262143328850"}.items():
        (zone / name).write_text(f"{text}\n")
    host = Host(sysroot=Sysroot(tmp_path / "machine"), state_dir=tmp_path / "state", name="bench")
    plan = make_plan(models=("good",), threads=(1,), duration_s=0.3, warm_up_s=0.0, idle_s=0.1, engines=(numpy_engine,))
    for event in run_sweep(plan, "s", host):
        if isinstance(event, RunFinished):
            assert event.run.verdict is Verdict.VOID
            assert "did not move" in " ".join(finding.detail for finding in event.run.findings)
            assert event.run.metric("power_w") is None
            assert event.run.metric("efficiency_img_per_s_per_w") is None
            assert event.run.metric("latency_p50_ms").value >= 1
