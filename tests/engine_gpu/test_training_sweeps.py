"""A sweep that trains on a GPU: a loss that is no number fails its runs, and the others go on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from powerlab.domain.run import Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Processor, WorkloadKind
from powerlab.sweep.events import RunFinished
from powerlab.sweep.host import Host
from powerlab.sweep.runner import run_sweep
from powerlab.sysroot import Sysroot
from small_network import write_small_network

pytestmark = pytest.mark.campaign

FACTORS = {"scale": 1e3, "w2": 3e38}
"""Both are finite, and what the second convolution makes of them is not."""


def write_overflowing_network(path: Path) -> Path:
    model = onnx.load(write_small_network(path))
    for constant in model.graph.initializer:
        if constant.name in FACTORS:
            value = numpy_helper.to_array(constant) * np.float32(FACTORS[constant.name])
            constant.CopyFrom(numpy_helper.from_array(value, constant.name))
    onnx.save(model, path)
    return path


def test_a_loss_that_is_no_number_fails_its_runs_with_step_and_layer_and_the_others_go_on(tmp_path):
    overflowing = write_overflowing_network(tmp_path / "overflowing.onnx")
    plan = SweepPlan(
        models=(str(overflowing), str(write_small_network(tmp_path / "small.onnx"))),
        threads=(1,),
        batch_sizes=(4,),
        workload=WorkloadKind.TRAIN,
        optimizers=("sgd",),
        processors=(Processor.GPU,),
        duration_s=0.1,
        warm_up_s=0.0,
        idle_s=0.0,
    )
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state", name="bench")
    with closing(run_sweep(plan, "s", host)) as events:
        runs = [event.run for event in events if isinstance(event, RunFinished)]
    said = "the first layer whose output is not finite is the Conv node 'second'"
    failed = {run.id for run in runs if run.verdict is Verdict.FAILED}
    assert failed == {run.id for run in runs if run.point.workload.model == str(overflowing)}
    assert (len(runs), len(failed)) == (6, 3)
    for run in runs:
        if run.id in failed:
            assert run.findings[0].detail.startswith("the loss of step 1 is ")
            assert said in run.findings[0].detail
