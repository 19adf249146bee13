"""``powerlab engine plan`` and ``powerlab engine tune``: what they print, without a look at the times."""

import json
import re

import numpy as np
import pytest
from engine_models import onnx_bytes
from onnx import helper

from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.engine.target.ceilings import Ceilings
from powerlab.engine.tuning.kept import FILE_NAME

HEADINGS = "node result algorithm kernel cut expected ms measured ms GFLOP/s % of roof"
ROOFS = Ceilings(peak_gflops=100.0, memory_gb_per_s=10.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Roofs that nobody measured, and a timer that nobody waits for."""
    monkeypatch.setattr("powerlab.engine.target.ceilings.measure_ceilings", lambda threads: ROOFS)
    monkeypatch.setattr("powerlab.engine.runtime.plan_listing._ENOUGH_NS", 0)
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("POWERLAB_TIER", "")
    return tmp_path


def printed(capsys, *arguments: str) -> str:
    assert main(["engine", *arguments]) == EXIT_OK
    return capsys.readouterr().out


def refused(capsys, *arguments: str) -> str:
    assert main(["engine", *arguments]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def plan(capsys, *arguments: str) -> dict:
    return json.loads(printed(capsys, "plan", "squeezenet@64", "--json", *arguments))


def test_every_step_is_there_with_its_choice(capsys):
    document = plan(capsys, "--threads", "2", "--batch", "3")
    assert (document["model"], document["threads"]) == ("squeezenet@64", 2)
    assert document["inputs"] == {"x": [3, 3, 64, 64]}
    assert [layer["step"] for layer in document["layers"]] == list(range(len(document["layers"])))
    convolutions = [layer for layer in document["layers"] if layer["operator"] == "FusedConv"]
    assert len(convolutions) == 26
    for layer in convolutions:
        assert layer["kernel"].startswith("conv_")
        assert layer["choice"]["algorithm"] in {"direct", "interleaved"} or layer["choice"]["algorithm"].startswith(
            "winograd"
        )
        assert layer["shape"][0] == 3
        assert layer["flops"] > 0
        assert layer["expected_ns"] > 0
        assert layer["measured_ns"] > 0
        assert layer["gflops"] > 0
        assert layer["roof_share"] > 0
    assert all(layer["choice"] is None for layer in document["layers"] if layer["operator"] == "MaxPool")


def test_totals_are_those_of_the_layers(capsys):
    document = plan(capsys)
    for name in ("flops", "expected_ns", "measured_ns"):
        total = sum(layer[name] for layer in document["layers"])
        assert document["totals"][name] == pytest.approx(total, abs=len(document["layers"]))


def test_what_is_only_expected_is_not_run(capsys, monkeypatch):
    monkeypatch.setattr("powerlab.engine.Session.run", lambda *_: pytest.fail("the model was run"))
    document = plan(capsys, "--expected")
    assert all(layer["measured_ns"] is None for layer in document["layers"])
    assert document["totals"]["measured_ns"] is None
    assert document["totals"]["gflops"] > 0


def test_no_convolution_is_expected_above_what_the_roof_of_arithmetic_allows(capsys):
    for layer in plan(capsys, "--expected")["layers"]:
        if layer["choice"] and layer["choice"]["algorithm"] == "direct":
            assert layer["gflops"] <= ROOFS.peak_gflops * 1.001


def test_the_caches_in_use_are_shown(capsys, quick):
    (quick / "engine-caches.toml").write_text("l1_bytes = 16384\nl2_bytes = 262144\nl3_bytes = 0\n")
    assert plan(capsys, "--expected")["caches"]["l2_bytes"] == 262144
    text = printed(capsys, "plan", "squeezenet@64", "--expected")
    assert f"caches: L1 16 KiB, L2 256 KiB, L3 0 KiB ({quick / 'engine-caches.toml'})" in text


def test_the_table_has_a_line_a_step_and_one_for_all(capsys):
    layers = plan(capsys, "--expected")["layers"]
    lines = printed(capsys, "plan", "squeezenet@64", "--expected").splitlines()
    assert re.fullmatch(r"squeezenet@64, x 1x3x64x64, 1 thread\(s\), \w+", lines[0])
    assert lines[2] == "roofs: 100 GFLOP/s, 10.0 GB/s"
    assert " ".join(lines[4].split()) == HEADINGS
    table = lines[5:]
    assert len(table) == len(layers) + 1
    assert [line.split()[0] for line in table[:-1]] == [layer["node"].split()[0] for layer in layers]
    first = next(layer for layer in layers if layer["choice"])
    line = table[first["step"]]
    assert first["kernel"] in line
    assert f"{first['expected_ns'] / 1e6:.3f}" in line
    assert table[-1].startswith("all ")


@pytest.mark.parametrize("action", ["plan", "tune"])
def test_open_sizes_are_given_as_for_a_run(capsys, quick, action):
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"])]
    weights = np.ones((8, 3, 3, 3), np.float32)
    (quick / "open.onnx").write_bytes(onnx_bytes(nodes, {"x": ("N", 3, "H", "W")}, ["y"], constants={"w": weights}))
    model = str(quick / "open.onnx")
    assert "leaves the size of axis 2 ('H') open; give it" in refused(capsys, action, model)
    document = json.loads(printed(capsys, action, model, "--input-shape", "x=2x3x9x9", "--json"))
    assert document["inputs" if action == "plan" else "input_shapes"] == {"x": [2, 3, 9, 9]}


def test_no_line_ends_in_blanks(capsys):
    lines = printed(capsys, "plan", "squeezenet@64", "--expected").splitlines()
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("action", ["plan", "tune"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nonet"], "there is no model 'nonet'"),
        (["squeezenet@64", "--threads", "0"], "threads must be an integer from 1"),
        (["squeezenet@64", "--threads", "x"], "'x' is not an integer"),
        (["squeezenet@64", "--batch", "0"], "the batch size must be 1 or more"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(capsys, action, arguments, sentence):
    assert sentence in refused(capsys, action, *arguments)


def test_measured_and_expected_exclude_each_other(capsys):
    assert "not allowed with" in refused(capsys, "plan", "squeezenet@64", "--measured", "--expected")


def test_damaged_files_are_one_sentence(capsys, quick):
    (quick / FILE_NAME).write_text("{")
    assert "engine-tuning.json was damaged" in refused(capsys, "plan", "squeezenet@64")
    (quick / "engine-caches.toml").write_text("l1_bytes = 'much'")
    assert "engine-caches.toml says l1_bytes" in refused(capsys, "plan", "squeezenet@64")


def last_wins(shape, choices, machine):
    return np.tile(np.linspace(1000.0, 500.0, len(choices)), (5, 1))


@pytest.fixture
def fake_timer(monkeypatch):
    monkeypatch.setattr("powerlab.engine.tuning.timer.measured_ns", last_wins)


@pytest.mark.usefixtures("fake_timer")
def test_what_is_tuned_is_kept_and_taken(capsys, quick):
    before = plan(capsys, "--expected")["layers"]
    document = json.loads(printed(capsys, "tune", "squeezenet@64", "--json"))
    assert document["file"] == str(quick / FILE_NAME)
    assert sum(one["layers"] for one in document["shapes"]) == 26
    assert document["tuned_ns"] < document["model_ns"]
    better = [one for one in document["shapes"] if one["choice"] != one["model_choice"]]
    assert better
    assert all(one["time_ratio"] == pytest.approx(0.5) for one in better)
    after = plan(capsys, "--expected")["layers"]
    assert [layer["choice"] for layer in after] != [layer["choice"] for layer in before]
    untuned = plan(capsys, "--expected", "--untuned")["layers"]
    assert [layer["choice"] for layer in untuned] == [layer["choice"] for layer in before]


@pytest.mark.usefixtures("fake_timer")
def test_tuning_prints_a_line_a_shape(capsys, quick):
    lines = printed(capsys, "tune", "squeezenet@64", "--threads", "2").splitlines()
    assert lines[0].split() == ["convolution", "layers", "by", "the", "model", "ms", "tuned", "time"]
    assert any("-50.0 %" in line for line in lines)
    assert lines[-2].startswith("all convolutions: ")
    assert lines[-1] == f"kept in {quick / FILE_NAME}"
