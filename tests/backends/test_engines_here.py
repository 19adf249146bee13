"""``--engine all`` is what this machine has and what runs the models; what is named must be there."""

from __future__ import annotations

import json

import pytest

from powerlab.backends import packages
from powerlab.backends.packages import PACKAGES
from powerlab.cli import main
from powerlab.cli.commands.profile import engines as engines_here
from powerlab.cli.commands.profile.engines import refuses_here, with_engines_here
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import engines_on
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Processor


@pytest.fixture
def installed(monkeypatch):
    """Let some engines be installed and no others."""

    def only(*engines):
        def version(engine):
            return "1.0" if engine in engines else None

        monkeypatch.setattr(packages, "installed_version", version)
        monkeypatch.setattr(engines_here, "installed_version", version)

    return only


def plan(*engines, **changes):
    return SweepPlan(models=("alexnet", "resnet50"), threads=(1, 2), engines=engines, **changes)


def nothing_refused(point):
    return None


def test_all_are_those_that_are_installed(installed):
    installed("builtin", "openvino", "ncnn")
    said = []
    assert with_engines_here(plan("all"), nothing_refused, said.append).engines == ("builtin", "openvino", "ncnn")
    assert said == [
        "powerlab: engines left out: onnxruntime, torch, torch-compile, litert "
        "(not installed; `powerlab engine backends` says how to install them)."
    ]


def test_an_engine_that_cannot_run_one_of_the_models_is_left_out_with_its_reason(installed):
    installed(*PACKAGES)
    said = []

    def refuses(point):
        load = point.workload
        return "ncnn has no such layer." if (load.engine, load.model) == ("ncnn", "resnet50") else None

    found = with_engines_here(plan("all"), refuses, said.append)
    assert found.engines == tuple(engine for engine in engines_on([Processor.CPU]) if engine != "ncnn")
    assert said == ["powerlab: engines left out: ncnn (ncnn has no such layer)."]


def test_each_model_and_precision_is_tried_once(installed):
    installed("builtin", "torch")
    tried = []

    def refuses(point):
        tried.append((point.workload.engine, point.workload.model, point.workload.precision))

    with_engines_here(plan("all", precisions=("fp32", "bf16"), batch_sizes=(1, 2)), refuses, lambda text: None)
    assert len(tried) == len(set(tried)) == 8


def test_nothing_is_said_where_nothing_is_left_out(installed):
    installed(*PACKAGES)
    said = []
    with_engines_here(plan("all"), nothing_refused, said.append)
    assert said == []


def test_engines_that_are_named_are_not_tried_but_must_be_installed(installed):
    installed("builtin", "openvino")

    def never(point):
        raise AssertionError("nobody asked")

    assert with_engines_here(plan("openvino", "builtin"), never) == plan("openvino", "builtin")
    with pytest.raises(PowerlabError, match=r"^the engine 'ncnn' is not installed here; install it with `pip install"):
        with_engines_here(plan("openvino", "ncnn"), never)


def test_a_worker_says_why_it_refuses_a_model(tmp_path):
    (good, *_), (bad, *_) = (
        SweepPlan(models=(model,), threads=(1,)).points() for model in ("mobilenetv2", str(tmp_path / "none.onnx"))
    )
    refuses = refuses_here(plan("builtin"), "/")
    assert refuses(good) is None
    assert "none.onnx is not a model file" in refuses(bad)


def test_a_missing_engine_ends_profile_before_anything_is_run(installed, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    installed("builtin")
    assert main(["profile", "mobilenetv2", "--engine", "openvino", "--threads", "1", "--database", "none"]) == 2
    said = capsys.readouterr().err
    assert "the engine 'openvino' is not installed here; install it with `pip install onnx openvino`" in said
    assert not list(tmp_path.rglob("*.ndjson"))


def test_the_list_of_engines_says_which_are_here_and_how_to_install_the_others(installed, capsys):
    installed("builtin", "ncnn")
    assert main(["engine", "backends"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert lines["ncnn"].split() == ["ncnn", "cpu,", "gpu", "no", "1.0"]
    assert "pip install onnx openvino" in lines["openvino"]
    assert main(["engine", "backends", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == set(PACKAGES)
    assert document["ncnn"] == {
        "version": "1.0",
        "processors": ["cpu", "gpu"],
        "trains": False,
        "install": "pip install ncnn",
    }
    assert document["torch"]["version"] is None


@pytest.mark.campaign
def test_engines_stand_side_by_side_with_their_versions_and_how_far_they_are_apart(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    quick = [
        "--duration",
        "0.05",
        "--warm-up",
        "0.01",
        "--longest-warm-up",
        "0.01",
        "--idle",
        "0",
        "--database",
        "none",
    ]
    output = tmp_path / "sweep.json"
    main(["profile", "mobilenetv2", "--engine", "builtin,litert", "--threads", "1", *quick, "--output", str(output)])
    out = capsys.readouterr().out
    runs = json.loads(output.read_bytes())["runs"]
    kept = {run["point"]["workload"]["engine"]: run["conditions"] for run in runs}
    assert kept["builtin"]["output_difference"] is None
    assert 0 < kept["litert"]["output_difference"] < 1e-5
    assert kept["litert"]["engine_version"] == packages.installed_version("litert")
    assert f"litert {kept['litert']['engine_version']}; outputs differ by at most " in " ".join(out.split())


def test_all_on_a_graphics_processor_are_those_that_can_use_one(installed):
    installed(*PACKAGES)
    found = with_engines_here(plan("all", processors=(Processor.GPU,)), nothing_refused, lambda text: None)
    assert found.engines == tuple(engine for engine in engines_on([Processor.GPU]) if engine in PACKAGES)
    assert "litert" not in found.engines
