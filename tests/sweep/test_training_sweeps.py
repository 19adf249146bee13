"""Sweeps that train a small network with real workers: figures of steps, and what cannot be trained."""

from __future__ import annotations

import re
import resource
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import RailQuantity
from powerlab.domain.run import Run, Verdict
from powerlab.domain.workload import Recompute, WorkloadKind
from powerlab.engine.training.parts import PARTS
from powerlab.measure.audit.recompute import recompute
from powerlab.sweep.events import RunFinished, SweepStarted
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot
from small_network import write_small_network


@pytest.fixture
def sweep(rapl_tree: Path, tmp_path: Path, make_plan):
    host = Host(sysroot=Sysroot(rapl_tree), state_dir=tmp_path / "state", name="bench")

    def finished(*models: Path, said: list[str] | None = None, **changes: object) -> list[RunFinished]:
        quick = {"threads": (1,), "batch_sizes": (4,), "duration_s": 0.1, "warm_up_s": 0.0, "idle_s": 0.0}
        trains = {"workload": WorkloadKind.TRAIN, "optimizers": ("sgd",)}
        plan = make_plan(models=tuple(map(str, models)), **{**quick, **trains, **changes})
        with closing(run_sweep(plan, "s", host)) as generator:
            events = list(generator)
        if said is not None:
            said += [event.advice for event in events if isinstance(event, SweepStarted)]
        return [event for event in events if isinstance(event, RunFinished)]

    return finished


TOO_LARGE = 130_000
"""Images whose activations no 8 GiB hold."""


@pytest.fixture
def little_memory():
    """Let processes that are started now take 8 GiB at most."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def network(tmp_path: Path) -> Path:
    return write_small_network(tmp_path / "small.onnx")


def scaled(network: Path, constant: str, factor: float) -> Path:
    """Return a copy of a network with one constant multiplied."""
    model = onnx.load(network)
    (found,) = (one for one in model.graph.initializer if one.name == constant)
    value = numpy_helper.to_array(found) * np.float32(factor)
    found.CopyFrom(numpy_helper.from_array(value.astype(np.float32), constant))
    path = network.with_name("scaled.onnx")
    onnx.save(model, path)
    return path


def test_steps_give_the_figures_of_queries_and_a_run_is_recomputed_from_its_record(sweep, network):
    found = sweep(network)
    assert len(found) == 3
    run: Run = found[0].run
    assert run.point.workload.optimizer == "sgd"
    seconds = (run.window_ns[1] - run.window_ns[0]) / 1e9
    images = 4 * run.inference_count
    assert run.metric("throughput_img_per_s").value == pytest.approx(images / seconds)
    assert run.metric("energy_per_image_j").value == pytest.approx(run.metric("power_w").value * seconds / images)
    assert {"latency_p50_ms", "latency_p99_ms", "peak_memory_mb"} <= {metric.name for metric in run.metrics}
    parts_ms = [run.metric(f"{part}_p50_ms").value for part in PARTS]
    assert min(parts_ms) > 0
    assert sum(parts_ms) <= 1.2 * run.metric("latency_p50_ms").value
    lines = {trace.rail.name: trace for trace in found[0].traces if trace.rail.quantity is RailQuantity.LATENCY}
    assert list(lines) == ["latency", *PARTS]
    assert lines["backward"].time_ns[0] - lines["forward"].time_ns[0] == round(1e9 * lines["forward"].value[0])
    assert run.conditions.output_difference is None
    assert recompute(run, found[0].traces)[2].metrics == run.metrics


@pytest.mark.campaign
def test_activations_may_be_computed_again(sweep, network):
    runs = [event.run for event in sweep(network, recompute=tuple(Recompute))]
    assert sorted(run.point.workload.recompute for run in runs) == ["no"] * 3 + ["yes"] * 3
    assert Verdict.FAILED not in {run.verdict for run in runs}


def test_a_loss_that_is_no_number_fails_its_runs_with_the_step_and_the_others_go_on(sweep, network):
    runs = [event.run for event in sweep(scaled(network, "w3", 1e38), network)]
    failed = [run for run in runs if run.verdict is Verdict.FAILED]
    assert {Path(run.point.workload.model).name for run in failed} == {"scaled.onnx"}
    assert len(failed) == 3
    assert all(run.findings[0].detail.startswith("the loss of step 2 is nan") for run in failed)


def test_a_batch_that_the_memory_does_not_hold_is_said_first_and_the_others_go_on(sweep, network, little_memory):
    said: list[str] = []
    runs = [event.run for event in sweep(network, batch_sizes=(4, TOO_LARGE), said=said)]
    assert re.fullmatch(
        r"Runs of .*small\.onnx in batches of 130000 will fail: training 'small' needs .* GiB for its activations, "
        r"gradients and weights, and .* GiB are left to this process; use a smaller batch.*",
        said[0],
    )
    failed = [run for run in runs if run.verdict is Verdict.FAILED]
    assert [run.point.workload.batch_size for run in failed] == [TOO_LARGE] * 3
    assert all("GiB are left to this process" in run.findings[0].detail for run in failed)
    assert len(runs) == 6


def test_what_never_fits_into_memory_is_refused_before_anything_is_measured(sweep, network, little_memory):
    with pytest.raises(PowerlabError, match="GiB are left to this process; use a smaller batch"):
        sweep(network, batch_sizes=(TOO_LARGE,))


def test_what_cannot_be_trained_is_refused_before_anything_is_measured(sweep, network):
    model = onnx.load(network)
    del model.graph.initializer[:]
    del model.graph.node[:]
    model.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["y"], "rise"))
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["N", 3, 32, 32]))
    bare = network.with_name("bare.onnx")
    onnx.save(model, bare)
    with pytest.raises(PowerlabError, match="has no parameters, so there is nothing to train"):
        sweep(bare)
