"""One run of each scenario with a real worker on a machine of 15 W: its figures, its images, and its record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Preparation, Scenario
from powerlab.measure.audit.recompute import recompute
from powerlab.measure.run import Measured, RunRequest, measure_run
from powerlab.sweep.host import Host
from powerlab.sweep.meter import choose_meter
from powerlab.sysroot import Sysroot

GENEROUS_MS = 2000.0
"""The fake engine takes 1 ms an image; a busy machine that tests run on may take very much longer."""


@pytest.fixture
def measured(rapl_tree: Path, tmp_path: Path, make_plan, numpy_engine):
    host = Host(sysroot=Sysroot(rapl_tree), state_dir=tmp_path / "state", name="bench")

    def measure(**changes: object) -> Measured:
        quick = {"models": ("good",), "threads": (1,), "duration_s": 0.5, "warm_up_s": 0.0, "idle_s": 0.0}
        plan: SweepPlan = make_plan(**{**quick, "engines": (numpy_engine,), **changes})
        return measure_run(
            RunRequest(
                sweep_id="s",
                plan=plan,
                point=plan.points()[0],
                repeat=0,
                meter=choose_meter(host.sysroot, host.capabilities(plan.modes), plan.sample_period_s),
                idle=None,
                drifted=lambda: None,
            )
        )

    return measure


@pytest.mark.parametrize(
    ("scenario", "changes", "images"),
    [
        pytest.param(Scenario.SINGLE_STREAM, {"batch_sizes": (2,)}, 2, id="single-stream"),
        pytest.param(Scenario.SINGLE_STREAM, {"batch_sizes": (4,), "threads": (4,), "slices": (4,)}, 4, id="slices"),
        pytest.param(Scenario.MULTI_STREAM, {"batch_sizes": (2,)}, 8, id="multi-stream"),
        pytest.param(Scenario.SERVER, {"batch_sizes": (2,), "latency_bound_ms": GENEROUS_MS}, 2, id="server"),
        pytest.param(Scenario.OFFLINE, {"batch_sizes": (8,)}, 8, id="offline"),
    ],
)
def test_a_run_counts_all_images_and_its_record_gives_every_figure_again(measured, scenario, changes, images):
    found = measured(scenarios=(scenario,), **changes)
    run = found.run
    seconds = (run.window_ns[1] - run.window_ns[0]) / 1e9
    (latencies,) = (trace for trace in found.traces if trace.rail.quantity is RailQuantity.LATENCY)
    assert latencies.time_ns.size == run.inference_count >= 10
    assert np.all(np.diff(latencies.time_ns) > 0)
    assert latencies.value.min() >= 0.001 * images / (run.point.workload.slices)
    assert run.metric("throughput_img_per_s").value == pytest.approx(run.inference_count * images / seconds)
    assert run.metric("energy_per_image_j").value == pytest.approx(
        run.metric("power_w").value * seconds / (run.inference_count * images)
    )
    assert run.metric("power_w").value == pytest.approx(15.0, rel=0.1)
    assert (run.metric("latency_p50_ms") is None) == (scenario is Scenario.OFFLINE)
    assert (run.metric("server_queries_per_s") is None) == (scenario is not Scenario.SERVER)
    _, _, again = recompute(run, found.traces)
    assert again.metrics == run.metrics
    assert again.findings == run.findings


def test_a_server_leaves_time_between_its_queries(measured):
    run = measured(scenarios=(Scenario.SERVER,), latency_bound_ms=GENEROUS_MS).run
    assert run.metric("server_queries_per_s").value == pytest.approx(run.metric("throughput_img_per_s").value, rel=0.5)
    assert run.metric("latency_p99_ms").value <= GENEROUS_MS


def test_a_bound_below_what_a_query_takes_is_refused_with_both(measured):
    with pytest.raises(PowerlabError, match=r"good cannot hold the bound of 0\.01 ms .* a query alone takes [\d.]+ ms"):
        measured(scenarios=(Scenario.SERVER,), latency_bound_ms=0.01)


def test_pictures_for_a_model_without_them_are_refused(measured):
    with pytest.raises(PowerlabError, match="leave the preparation outside"):
        measured(preparation=Preparation.INSIDE)


def test_a_run_whose_preparation_is_timed_is_measured(measured):
    run = measured(models=("pictures",), preparation=Preparation.INSIDE).run
    assert run.metric("latency_p50_ms").value >= 1.0
    assert run.point.workload.preparation is Preparation.INSIDE
