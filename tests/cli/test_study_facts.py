"""What a study knows before it runs: networks, memory, and what engines say when they are tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.cli.commands.study import requirements
from powerlab.cli.commands.study.requirements import Trials, models, needed_bytes
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import WorkloadKind
from powerlab.engine.frontend.load import split_size
from powerlab.engine.frontend.zoo import ZOO
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers
from powerlab.measure.worker.process import WorkerError
from powerlab.state_dir import state_dir
from powerlab.studies.registry import STUDIES, find_study
from powerlab.sweep.host import Host
from powerlab.sweep.meter import choose_meter
from powerlab.sysroot import Sysroot

AA = find_study("aa")


@pytest.fixture(scope="module")
def meter():
    sysroot = Sysroot(Path("/"))
    host = Host(sysroot=sysroot, state_dir=state_dir(sysroot))
    return choose_meter(sysroot, host.capabilities(), 0.01)


@pytest.fixture
def without_float16(monkeypatch):
    """Compute as the oldest processor of this kind."""
    monkeypatch.setenv(TIER_VARIABLE, available_tiers()[-1].name)


def test_the_zoo_has_every_network_of_every_study():
    for study in STUDIES.values():
        networks = {name for plan in study.plans for name in plan.models}
        assert set(models(study, [])) == networks
        assert {split_size(name)[0] for name in networks} <= set(ZOO)


def test_a_file_takes_the_place_of_a_network():
    assert models(AA, ["alexnet=nets/a=b.onnx"]) == {"alexnet": "nets/a=b.onnx"}


@pytest.mark.parametrize("word", ["alexnet", "alexnet=", "=x.onnx", "", "resnet50=x.onnx"])
def test_a_word_that_names_no_network_and_file_is_refused(word):
    with pytest.raises(PowerlabError, match=r"write a network and its file|has no network"):
        models(AA, [word])


def test_more_images_need_more_memory_evenly():
    steps = [needed_bytes("mobilenetv2", count) for count in (1, 2, 3)]
    assert steps[2] - steps[1] == steps[1] - steps[0] > 3 * 224 * 224 * 4


def test_an_engine_that_runs_a_model_says_how_long_it_takes(meter):
    trials = Trials(meter)
    assert trials.refusal("builtin", "mobilenetv2", "fp32") == ""
    plan = SweepPlan(models=("mobilenetv2",), threads=(1, 2), batch_sizes=(1, 8))
    expected = trials.inference_s(plan)
    seconds = [expected[point.id] for point in plan.points()]
    assert seconds[0] > 0
    assert seconds == pytest.approx([seconds[0], seconds[0] / 2, 8 * seconds[0], 4 * seconds[0]])
    trained = replace(plan, workload=WorkloadKind.TRAIN, optimizers=("sgd",))
    steps = trials.inference_s(trained)
    assert [steps[point.id] for point in trained.points()] == pytest.approx([3 * one for one in seconds])
    assert list(trials.said) == [("builtin", "mobilenetv2", "fp32", "cpu")]


@pytest.mark.parametrize(
    ("engine", "model", "precision", "sentence"),
    [
        ("builtin", "mobilenetv2", "fp16", "no instructions for arithmetic in float16"),
        ("builtin", "/nowhere/net.onnx", "fp32", "/nowhere/net.onnx"),
        ("builtin", "resnet51", "fp32", "resnet51"),
    ],
)
@pytest.mark.usefixtures("without_float16")
def test_an_engine_that_does_not_gives_its_reason(meter, engine, model, precision, sentence):
    assert sentence in Trials(meter).refusal(engine, model, precision)


def test_an_engine_that_dies_is_an_engine_that_does_not(meter, monkeypatch):
    class Dead:
        def __init__(self, _cores):
            raise WorkerError("the worker died of signal 11.")

    monkeypatch.setattr(requirements, "Worker", Dead)
    assert Trials(meter).refusal("builtin", "mobilenetv2", "fp32") == "the worker died of signal 11."


def test_what_is_here_is_the_devices_and_the_installations(meter):
    device = Device(
        name="bench", board="generic", architecture="x86_64", cpu_model="EPYC", core_count=2, memory_bytes=2**33,
        kernel="6.1", simulated=False,
    )  # fmt: skip
    capabilities = Capabilities(sources=(), total=None, modes=(CURRENT_MODE,))
    found = requirements.here(AA, device, capabilities, [], Trials(meter))
    assert (found.name, found.core_count, found.memory_bytes, found.modes) == ("bench", 2, 2**33, (CURRENT_MODE,))
    assert "builtin" in found.engines
    assert found.needed_bytes("alexnet", 1) == needed_bytes("alexnet", 1)
