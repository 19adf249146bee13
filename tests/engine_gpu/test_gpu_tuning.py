"""Tuning on a GPU: what is found is kept for this GPU, driver and precision, and taken by the next session."""

from __future__ import annotations

import json

import numpy as np
import pytest
from engine_models import onnx_bytes
from msgspec.structs import replace
from onnx import helper

from powerlab.cli import main
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.gpu.choice.candidates import candidates
from powerlab.engine.gpu.choice.method import Numbers
from powerlab.engine.gpu.choice.rule import by_rule
from powerlab.engine.gpu.device import this_target
from powerlab.engine.gpu.tuning.kept import FILE_NAME, Tuned, keep_tunings, read_tunings, this_place


@pytest.fixture
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def model(tmp_path):
    weights = np.random.default_rng(1).standard_normal((16, 8, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    path = tmp_path / "conv.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (1, 8, 12, 12)}, constants={"w": weights}))
    return path


def not_by_rule(shape, numbers):
    """Return a method of another kernel than the rule's, whatever that is on this device."""
    rule = by_rule(this_target())(shape, numbers)
    return next(
        one for one in candidates(shape, this_target(), numbers) if one.kernel != rule.kernel and not one.winograd
    )


def kernels(model, **choices):
    return [kernel for kernel, _ in Session(model, device="gpu", **choices).steps()]


def test_what_tuning_finds_is_kept_and_taken(state, model, capsys):
    assert main(["engine", "tune", str(model), "--processor", "gpu", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (shape,) = document["shapes"]
    assert shape["layers"] == 1
    assert 0 < document["tuned_ns"] <= document["rule_ns"]
    (kept,) = read_tunings(this_place()).shapes
    assert kept.method.kernel == shape["method"]["kernel"]
    assert ("winograd_in_fp32" in kernels(model)) == bool(kept.method.winograd)

    other = not_by_rule(kept.shape, Numbers.FP32)
    tunings = read_tunings(this_place())
    keep_tunings(tunings.added(Tuned(shape=kept.shape, numbers=Numbers.FP32, method=other)))
    assert f"{other.kernel}_fp32" in kernels(model)
    assert f"{other.kernel}_fp32" not in kernels(model, tuned=False)
    assert f"{other.kernel}_fp16" not in kernels(model, precision="fp16")

    keep_tunings(tunings.added(Tuned(shape=kept.shape, numbers=Numbers.FP32, method=replace(other, lanes=4096))))
    assert f"{other.kernel}_fp32" not in kernels(model)


def test_convolutions_of_bytes_are_tuned(state, model, capsys):
    assert main(["engine", "tune", str(model), "--processor", "gpu", "--precision", "int8", "--json"]) == 0
    (shape,) = json.loads(capsys.readouterr().out)["shapes"]
    (kept,) = read_tunings(this_place()).shapes
    assert kept.numbers == shape["numbers"] == "int8"
    assert kept.method.kernel == shape["method"]["kernel"]
    other = not_by_rule(kept.shape, Numbers.INT8)
    keep_tunings(read_tunings(this_place()).added(replace(kept, method=other)))
    taken = kernels(model, precision="int8")
    assert any(name.startswith(other.kernel) for name in taken)
    assert not any(name.startswith(other.kernel) for name in kernels(model, precision="int8", tuned=False))
    assert not any(name.startswith("quant") for name in kernels(model))


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_convolutions_over_volumes_are_tuned(precision, state, tmp_path, capsys):
    weights = np.random.default_rng(1).standard_normal((16, 8, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 6)
    path = tmp_path / "volume.onnx"
    path.write_bytes(onnx_bytes([node], {"x": (1, 8, 4, 6, 6)}, constants={"w": weights}))
    assert main(["engine", "tune", str(path), "--processor", "gpu", "--precision", precision, "--json"]) == 0
    (shape,) = json.loads(capsys.readouterr().out)["shapes"]
    assert shape["layers"] == 1
    tunings = read_tunings(this_place())
    (kept,) = tunings.shapes
    assert (kept.shape.images, kept.shape.inputs, kept.shape.size) == (4, 24, (6, 6))
    other = not_by_rule(kept.shape, kept.numbers)
    keep_tunings(tunings.added(replace(kept, method=other)))
    named = f"volume_{other.kernel}"
    assert any(name.startswith(named) for name in kernels(path, precision=precision))
    assert not any(name.startswith(named) for name in kernels(path, precision=precision, tuned=False))


def test_a_damaged_file_is_said_and_moved_aside(state, model):
    (state / FILE_NAME).write_text("{")
    with pytest.raises(PowerlabError, match=r"gpu-tuning.json was damaged .* now lies at gpu-tuning.json.damaged"):
        Session(model, device="gpu")
    assert (state / (FILE_NAME + ".damaged")).exists()
    Session(model, device="gpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--processor", "gpu", "--threads", "2"], "a GPU has no threads to choose"),
        (["--precision", "fp16"], "tuned in fp32 alone"),
    ],
)
def test_what_makes_no_sense_is_refused(state, model, words, said, capsys):
    assert main(["engine", "tune", str(model), *words]) == 2
    assert said in capsys.readouterr().err
