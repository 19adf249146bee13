"""What becomes of one run: the record of a good one, of a failed one, and its traces."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.measure import run
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.recording.rails import IdleBaseline, Meter
from powerlab.measure.run import RunRequest, failed_run, measure_run, worker_cores
from powerlab.measure.validity import Evidence
from powerlab.sysroot import Sysroot

PLAN = SweepPlan(models=("good",), threads=(1,), batch_sizes=(4,))


@pytest.fixture
def request_(make_rail, tmp_path) -> RunRequest:
    rail = make_rail("VDD_IN")
    total = TotalFormula(rails=(rail.key,), scope="all")
    meter = Meter(sysroot=Sysroot(tmp_path), total=total, rails=(rail,), sample_period_s=0.01)
    idle = TotalEnergy(energy_j=8.0, duration_s=2.0, parts=(), provenance=Provenance.MEASURED)
    return RunRequest(
        sweep_id="s",
        plan=PLAN,
        point=PLAN.points()[0],
        repeat=2,
        meter=meter,
        idle=IdleBaseline(energy=idle, window_ns=(0, 2_000_000_000)),
        drifted=lambda: None,
    )


@pytest.fixture
def recorded(request_, make_trace, monkeypatch):
    """Let a run find 50 inferences of 0.1 s from 1 s to 6 s, at 12 W."""

    def install(drift: str | None = None, power_w: float = 12.0) -> None:
        starts = 1_000_000_000 + np.arange(50, dtype=np.int64) * 100_000_000
        timed = TimedInferences(start_ns=starts, end_ns=starts + 100_000_000)
        trace = make_trace(np.arange(0, 8, 0.01), np.full(800, power_w), request_.meter.rails[0])
        evidence = Evidence(
            window_ns=timed.window_ns,
            inference_count=timed.count,
            total=request_.meter.total,
            traces=(trace,),
            sample_period_s=0.01,
            drift=drift,
            idle_before=request_.idle.energy,
        )
        found = run._Recorded(timed=timed, evidence=evidence, idle_after=None, start_c=None)
        monkeypatch.setattr(run, "_record", lambda _: found)

    return install


def test_a_good_run_holds_every_figure_and_its_provenance(request_, recorded):
    recorded()
    found = measure_run(request_).run
    figures = {metric.name: metric.value for metric in found.metrics}
    assert found.verdict is Verdict.VALID
    assert found.total == request_.meter.total
    assert figures["throughput_img_per_s"] == pytest.approx(40)
    assert figures["power_w"] == pytest.approx(12)
    assert figures["idle_power_w"] == pytest.approx(4)
    assert figures["energy_per_image_j"] == pytest.approx(60 / 200)
    assert figures["energy_above_idle_per_image_j"] == pytest.approx((60 - 20) / 200)
    assert figures["efficiency_img_per_s_per_w"] == pytest.approx(40 / 12)
    assert {metric.provenance for metric in found.metrics} == {Provenance.MEASURED}


def test_everything_that_was_recorded_is_kept(request_, recorded):
    """What was judged must be there to be judged again: the samples from before the load, too."""
    recorded()
    trace, latencies = measure_run(request_).traces
    assert latencies.rail.quantity is RailQuantity.LATENCY
    assert latencies.value == pytest.approx(np.full(50, 0.1))
    assert (trace.time_ns[0], trace.time_ns.size) == (0, 800)


def test_a_run_at_0_w_has_latency_and_no_power_figure_at_all(request_, recorded):
    recorded(power_w=0.0)
    found = measure_run(request_).run
    assert found.verdict is Verdict.VOID
    assert found.metric("latency_p50_ms") is not None
    assert {metric.name for metric in found.metrics if metric.name.endswith(("_w", "_j"))} == set()


def test_a_drifted_run_is_void_and_says_so(request_, recorded):
    recorded(drift="somebody changed MAXN meanwhile.")
    found = measure_run(request_).run
    assert found.verdict is Verdict.VOID
    assert [finding.detail for finding in found.findings] == ["somebody changed MAXN meanwhile."]


def test_a_failed_run_has_a_reason_and_no_figure(request_):
    failed = failed_run(request_, "worker-failed", "it stepped on a rake.")
    assert (failed.verdict, failed.metrics, failed.window_ns) == (Verdict.FAILED, (), (0, 0))
    assert failed.findings[0].detail == "it stepped on a rake."
    assert failed.id != failed_run(request_, "worker-failed", "").id


def test_a_worker_gets_the_first_cores_of_the_mask_and_no_more_than_there_are():
    mask = sorted(os.sched_getaffinity(0))
    point = PLAN.points()[0]
    assert worker_cores(point) == {mask[0]}
    assert worker_cores(replace(point, threads=10_000)) == set(mask)
    assert worker_cores(replace(point, cores=str(mask[-1]))) == {mask[-1]}
    assert worker_cores(replace(point, cores="9990-9999")) == {mask[0]}, "a simulated board has cores this host has not"
