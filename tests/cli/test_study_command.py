"""``powerlab study``: what is said before, during and after, without the minutes a real repetition takes."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace

import numpy as np
import pytest

from powerlab.cli import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, main
from powerlab.cli.commands.profile.measure import Made
from powerlab.cli.commands.study import repeat, requirements
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import Graph, Node, TensorInfo
from powerlab.engine.runtime import memory
from powerlab.engine.target.tiers import choose_tier
from powerlab.measure.output_check import OutputsDifferError
from powerlab.studies.planning import plan_study
from powerlab.studies.registry import STUDIES, find_study
from tests.analysis.paired_runs import sweep


@pytest.fixture
def tried(monkeypatch):
    """Answer for the engines: every model in fp32 takes 10 ms on the cores; return the questions."""
    questions = []

    def answer(_self, engine, model, precision, processor):
        questions.append((engine, model, precision, processor))
        if processor == "gpu":
            return f"{engine} finds no graphics processor.", 0.0
        return ("", 0.01) if precision == "fp32" else (f"the engine {engine} computes in fp32 alone.", 0.0)

    monkeypatch.setattr(requirements.Trials, "_try", answer)
    return questions


@pytest.fixture
def measured(monkeypatch, tried):
    """Make runs up instead of measuring them; return the plans that were carried out."""
    plans = []

    def make(plan, host, device, capabilities, address):
        plans.append(plan)
        truth = {point: (10.0 * point.threads, 5.0) for point in plan.points()}
        sweep_id = str(uuid.UUID(int=len(plans)))
        made = sweep(truth, repeats=plan.repeats, sweep_id=sweep_id, provenance=Provenance.SIMULATED)
        interrupted = address == "interrupted"
        return Made(sweep_id=sweep_id, runs=made, run_count=len(made), interrupted=interrupted, places=())

    monkeypatch.setattr(repeat, "measure_and_keep", make)
    return plans


def said(capsys, *words, status=EXIT_OK):
    assert main(["study", *words]) == status
    return capsys.readouterr()


def refused(capsys, *words):
    error = said(capsys, *words, status=EXIT_USAGE).err
    assert error.startswith("powerlab: ")
    return error


def test_an_engine_that_computes_something_else_leaves_its_sweep_which_goes_on(capsys, tmp_path, monkeypatch, measured):
    make, engines = repeat.measure_and_keep, []

    def check_first(plan, *others):
        engines.append(plan.engines)
        if "wrong" in plan.engines:
            raise OutputsDifferError("the outputs of wrong differ by 0.3; leave out this engine.", "wrong")
        return make(plan, *others)

    def with_wrong(*asked, **named):
        planned = plan_study(*asked, **named)
        return replace(planned, plans=tuple(replace(plan, engines=("builtin", "wrong")) for plan in planned.plans))

    monkeypatch.setattr(repeat, "measure_and_keep", check_first)
    monkeypatch.setattr(repeat, "plan_study", with_wrong)
    monkeypatch.setattr(repeat, "check_plan", lambda *_: None)
    text = said(capsys, "tegra-x1-alexnet", "--quick", "--board", "jetson-nano", "--output", str(tmp_path)).err
    assert engines == [("builtin", "wrong"), ("builtin",)]
    assert "on wrong, batch 1, 16, threads 4, modes current; 6 runs, because the outputs of wrong differ" in text
    document = json.loads((tmp_path / "tegra-x1-alexnet.json").read_text())
    assert "the outputs of wrong differ by 0.3" in [one["why"] for one in document["not_repeated"]]


def test_the_list_names_every_study(capsys):
    text = said(capsys, "list").out
    assert all(f"{name} " in text for name in STUDIES)
    assert [one["name"] for one in json.loads(said(capsys, "list", "--json").out)] == list(STUDIES)


def test_a_plan_says_what_runs_for_how_long_and_what_cannot_be_repeated(capsys, measured):
    text = said(capsys, "tegra-x1-alexnet", "--plan", "--board", "jetson-nano").err
    assert re.search(
        r"Sweep 1 of 1 on simulated-jetson-nano, about \d+ min: alexnet in fp32 on builtin, batch 1, 48, 128, "
        "threads 4, modes current; 9 runs",
        text,
    )
    assert "Not repeated: alexnet in fp16 on builtin on the gpu, because builtin finds no graphics processor." in text
    assert "Not repeated: a Tegra X1 and a Core i7 6700K themselves" in text
    assert measured == []


def test_a_plan_tells_sweeps_on_the_graphics_processor_from_those_on_the_cores(capsys, monkeypatch):
    monkeypatch.setattr(requirements.Trials, "_try", lambda *_: ("", 0.01))
    text = said(capsys, "caffe-streams", "--plan", "--board", "gpu-workstation").err
    for trained in ("training by sgd: ", ""):
        assert f"{trained}alexnet, resnet18 in fp32 on builtin, batch 32, threads 8, modes current, slices 1, 2" in text
        assert f"{trained}alexnet, resnet18 in fp32 on builtin on the gpu, batch 32, modes current, slices 1, 2" in text


def test_slow_models_make_the_outlook_longer(capsys, monkeypatch):
    monkeypatch.setattr(requirements.Trials, "_try", lambda *_: ("", 100.0))
    text = said(capsys, "xavier-resnet50", "--plan", "--board", "jetson-nano", "--quick").err
    assert " h: resnet50" in text


def test_both_tables_are_shown_and_written(capsys, measured, tmp_path):
    folder = tmp_path / "new" / "results"
    shown = said(capsys, "tegra-x1-alexnet", "--quick", "--board", "jetson-nano", "--output", str(folder))
    assert [plan.batch_sizes for plan in measured] == [(1, 16)]
    assert shown.out.count("published") == 6
    assert shown.out.count("simulated-jetson-nano") == 2
    assert {path.name for path in folder.iterdir()} == {f"tegra-x1-alexnet.{kind}" for kind in ("tex", "html", "json")}
    document = json.loads((folder / "tegra-x1-alexnet.json").read_text())
    provenances = [{figure["provenance"] for figure in row["figures"]} for row in document["rows"]]
    assert provenances.count({"published"}) == 6
    assert provenances.count({"measured", "simulated"}) == 2
    assert [bool(row["sweep_id"]) for row in document["rows"]].count(True) == 2
    assert any("fp16" in one["what"] for one in document["not_repeated"])
    assert "simulated-jetson-nano" in (folder / "tegra-x1-alexnet.html").read_text()
    assert "simulated-jetson-nano" in (folder / "tegra-x1-alexnet.tex").read_text()


def test_json_stands_alone_on_standard_output(capsys, measured):
    document = json.loads(said(capsys, "tegra-x1-alexnet", "--json", "--board", "jetson-nano").out)
    assert document["study"] == "tegra-x1-alexnet"
    assert len(document["sweeps"]) == len(measured) == 1


def test_a_board_is_swept_in_its_vendors_modes_and_their_cores(capsys, measured):
    said(capsys, "xavier-resnet50", "--quick", "--board", "jetson-nano")
    assert {mode for plan in measured for mode in plan.modes} == {"MAXN", "5W"}
    assert {plan.modes: plan.threads for plan in measured} == {("MAXN",): (1, 2, 4), ("5W",): (1, 2)}


def test_a_against_a_ends_in_ratios(capsys, measured):
    text = said(capsys, "aa", "--quick", "--board", "jetson-agx-xavier").out
    (plan,) = measured
    assert plan.cores == ("", "0,1,2,3,4,5,6,7")
    assert text.count("cores default") == len(find_study("aa").metrics)
    assert "ratio (95 % CI)" in text


def test_ctrl_c_ends_the_study_with_what_was_measured(capsys, measured):
    words = ("xavier-resnet50", "--quick", "--board", "jetson-nano", "--database", "interrupted")
    text = said(capsys, *words, status=EXIT_INTERRUPTED)
    assert len(measured) == 1
    assert "interrupted" in text.err
    assert "ResNet-50" in text.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["tegra-x1-alexnett"], "(did you mean tegra-x1-alexnet?)"),
        (["nosuch"], "there is no study 'nosuch'; choose from: aa, "),
        (["aa", "--quick", "--rigour", "publishable"], "--quick is --rigour quick"),
        (["aa", "--board", "jetson-nanno"], "(did you mean jetson-nano?)"),
        (["aa", "--engine", "openvinoo"], "the engine 'openvinoo' is not known (did you mean openvino?); one of: "),
        (["aa", "--engine", "torch"], "the engine 'torch' is not installed here; install it with"),
        (["aa", "--model", "alexnet"], "write a network and its file as alexnet=FILE.onnx"),
        (["aa", "--model", "vgg=x.onnx"], "the study aa has no network 'vgg'; it runs alexnet"),
        (["aa", "--model", "alexnet=/nowhere/x.onnx"], "/nowhere/x.onnx"),
        (["aa", "--output", "/proc/none"], "cannot write --output /proc/none"),
        (["xavier-resnet50", "--board", "jetson-nano", "--modes", "MAXNN"], "(did you mean MAXN?)"),
        (["xavier-resnet50", "--board", "jetson-nano", "--modes", "MODE_30W_ALL"], "has no power mode"),
    ],
)
def test_what_cannot_be_repeated_is_refused_in_one_sentence(capsys, measured, words, sentence):
    error = refused(capsys, *words)
    assert sentence in error
    assert error.count("\n") == 1
    assert measured == []


def test_a_network_too_big_for_the_board_is_said_before_the_sweep(capsys, measured, monkeypatch):
    monkeypatch.setattr(requirements, "_sizes", lambda _model: (2**28, 2**26, 2**27))
    said(capsys, "tegra-x1-alexnet", "--board", "jetson-nano")
    assert [plan.batch_sizes for plan in measured] == [(1, 48)]
    monkeypatch.setattr(requirements, "_sizes", lambda _model: (2**34, 2**26, 2**27))
    error = refused(capsys, "tegra-x1-alexnet", "--board", "jetson-nano")
    assert "nothing of the study tegra-x1-alexnet can be repeated on simulated-jetson-nano" in error
    assert "it takes at least 16.1 GiB for weights and activations, and simulated-jetson-nano has 3.9 GiB" in error


def test_a_mode_that_the_board_lacks_is_refused_before_any_engine_is_tried(capsys, measured, tried):
    refused(capsys, "xavier-resnet50", "--board", "jetson-nano", "--modes", "MAXNN")
    assert tried == []


def test_every_engine_is_asked_once(capsys, measured, tried):
    said(capsys, "tegra-x1-alexnet", "--quick", "--board", "jetson-nano")
    assert sorted(tried) == sorted(set(tried))


def test_the_least_memory_is_that_of_the_tensors_alive_together():
    """A chain of three: at each step its input and its output; the widest pair counts."""
    sizes = {"x": 10, "a": 100, "b": 30, "y": 5}
    tensors = {name: TensorInfo(name, (size,)) for name, size in sizes.items()}
    nodes = [Node("Relu", f"to {two}", (one,), (two,)) for one, two in (("x", "a"), ("a", "b"), ("b", "y"))]
    graph = Graph("chain", tuple(nodes), (tensors["x"],), (tensors["y"],), {}, tensors)
    assert memory.live_bytes(graph) == 4 * (100 + 30)
    assert memory.weight_bytes(graph) == 0


def test_what_is_read_again_later_stays():
    tensors = {name: TensorInfo(name, (10,)) for name in ("x", "a", "b", "y")}
    nodes = [Node("Relu", "1", ("x",), ("a",)), Node("Relu", "2", ("a",), ("b",)), Node("Add", "3", ("x", "b"), ("y",))]
    graph = Graph("skip", tuple(nodes), (tensors["x"],), (tensors["y"],), {}, tensors)
    assert memory.live_bytes(graph) == 4 * 30


def test_memory_of_alexnet_is_its_weights_and_a_share_for_every_image():
    graph = load_graph("alexnet")
    weights = sum(value.nbytes for value in graph.constants.values())
    one, many = requirements.needed_bytes("alexnet", 1), requirements.needed_bytes("alexnet", 128)
    assert weights * 0.99 < one < weights * 1.2
    assert 127 * 4 * np.prod((3, 224, 224)) < many - one
    with pytest.raises(PowerlabError):
        requirements.needed_bytes("nosuch", 1)


def test_the_first_cores_are_those_of_the_mask_and_a_longer_list_is_counted_up(monkeypatch):
    monkeypatch.setattr(requirements.os, "sched_getaffinity", lambda _pid: {2, 5, 7})
    assert requirements.first_cores(2) == "2,5"
    assert requirements.first_cores(5) == "0,1,2,3,4"


@pytest.mark.campaign(minutes=3)
def test_a_study_is_repeated_on_a_simulated_board(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    status = main(
        ["study", "tegra-x1-alexnet", "--quick", "--board", "jetson-nano", "--json", "--output", str(tmp_path)]
    )
    assert status in {0, 1}
    document = json.loads(capsys.readouterr().out)
    ours = [row for row in document["rows"] if row["sweep_id"]]
    precisions = 2 if choose_tier().halves else 1  # the engine computes on this processor
    assert [row["provenance"] for row in ours] == ["simulated"] * 2 * precisions
    assert (tmp_path / "tegra-x1-alexnet.tex").stat().st_size > 1000
