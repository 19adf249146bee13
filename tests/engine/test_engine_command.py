"""``powerlab engine``: what it prints and writes, and one sentence with exit status 2 for what it cannot do."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from engine_models import LIGHT, onnx_bytes, relative_error, run_ort
from onnx import helper

from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.cli.commands.engine.npz import read_npz, write_npz
from powerlab.domain.errors import PowerlabError

NODES = [helper.make_node("Relu", ["x"], ["file"]), helper.make_node("Add", ["x", "x"], ["a/b"])]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_bytes(NODES, {"x": ("N", 2, 3, 3)}, ["file", "a/b"]))
    return path


def fails(capsys, *arguments):
    assert main(["engine", *map(str, arguments)]) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("powerlab: ")
    assert err.count("\n") == 1
    return err


def test_run_writes_the_outputs(model, tmp_path, capsys):
    x = np.random.default_rng(0).standard_normal((2, 2, 3, 3), dtype=np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    arguments = ["run", str(model), "--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    assert main(["engine", *arguments, "--input-shape", "x=2x2x3x3", "--threads", "2"]) == EXIT_OK
    out, err = capsys.readouterr()
    assert "file 2x2x3x3, a/b 2x2x3x3" in out
    assert "2 thread(s)" in out
    assert not err
    assert relative_error(read_npz(tmp_path / "out.npz"), run_ort(model.read_bytes(), {"x": x})) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.npz", "model.onnx", "out.npz"]


def test_run_takes_open_sizes_from_the_input_file(model, tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.ones((5, 2, 3, 3), np.float32))
    files = "--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")
    assert main(["engine", "run", str(model), *files]) == EXIT_OK
    assert "file 5x2x3x3" in capsys.readouterr().out
    assert "has 4 axes" in fails(capsys, "run", model, *files, "--input-shape", "x=2x3")
    assert "has shape [5, 2, 3, 3]" in fails(capsys, "run", model, *files, "--input-shape", "x=2x2x3x3")


def test_run_tells_machines_in_json(tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.ones((1, 3, 32, 32), np.float32))
    arguments = ["run", "mobilenetv2", "--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    assert main(["engine", *arguments, "--input-shape", "x=1x3x32x32", "--json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert document["outputs"] == {"y": [1, 1000]}
    assert document["first_run_ns"] > 0
    assert read_npz(tmp_path / "out.npz")["y"].shape == (1, 1000)


def test_run_may_cut_the_batch_into_slices(tmp_path, capsys):
    np.savez(tmp_path / "in.npz", x=np.random.default_rng(0).standard_normal((4, 3, 32, 32), dtype=np.float32))
    found = {}
    for slices in (1, 2):
        files = ("--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz"))
        arguments = ["run", "mobilenetv2", *files, "--input-shape", "x=4x3x32x32", "--threads", "2"]
        assert main(["engine", *arguments, "--slices", str(slices)]) == EXIT_OK
        found[slices] = capsys.readouterr().out, read_npz(tmp_path / "out.npz")["y"]
    assert "2 thread(s), " in found[1][0]
    assert "2 thread(s) in 2 slices, " in found[2][0]
    assert np.array_equal(found[1][1], found[2][1])
    assert main(["engine", *arguments, "--slices", "2", "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["slices"] == 2
    assert "2 thread(s) cannot be shared evenly by 3 slices" in fails(capsys, *arguments, "--slices", "3")


def test_run_needs_an_input_file(model, capsys):
    assert main(["engine", "run", str(model), "--output", "out.npz"]) == EXIT_USAGE
    assert "--input" in capsys.readouterr().err


def _text(path):
    path.write_text("no archive")


def _nameless(path):
    with path.open("wb") as stream:
        np.save(stream, np.ones(3))


def _pickled(path):
    np.savez(path, x=np.array([{}], dtype=object))


def _damaged(path):
    np.savez_compressed(path, x=np.ones((1, 2, 3, 3), np.float32))
    content = bytearray(path.read_bytes())
    content[60:90] = b"\xff" * 30
    path.write_bytes(content)


def _bad_header(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'(" + b" " * 9)


BAD_INPUTS = {
    "missing": (lambda path: None, "does not exist; give a NumPy .npz file"),
    "text": (_text, "is not a readable .npz file"),
    "one array": (_nameless, "holds one nameless array"),
    "pickled": (_pickled, "is not a readable .npz file"),
    "damaged": (_damaged, "is not a readable .npz file"),
    "bad header": (_bad_header, "is not a readable .npz file"),
    "folder": (lambda path: path.mkdir(), "cannot be read: Is a directory"),
    "wrong name": (lambda path: np.savez(path, y=np.ones((1, 2, 3, 3), np.float32)), "no input 'y'"),
    "wrong shape": (lambda path: np.savez(path, x=np.ones((1, 2, 3), np.float32)), "has shape"),
    "wrong type": (lambda path: np.savez(path, x=np.ones((1, 2, 3, 3))), "float32"),
    "nothing": (np.savez, "'x' is missing"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_a_bad_input_file_is_one_sentence_and_leaves_no_output(name, model, tmp_path, capsys):
    make, sentence = BAD_INPUTS[name]
    make(tmp_path / "in.npz")
    before = sorted(tmp_path.iterdir())
    files = "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz"
    assert sentence in fails(capsys, "run", model, *files, "--input-shape", "x=1x2x3x3")
    assert sorted(tmp_path.iterdir()) == before


def test_an_output_that_cannot_be_written_is_told_before_the_work(model, tmp_path, capsys):
    files = "--input", tmp_path / "no.npz", "--output", tmp_path / "gone" / "out.npz"
    assert "gone/out.npz cannot be written: its folder does not exist" in fails(capsys, "run", model, *files)
    files = "--input", tmp_path / "no.npz", "--output", tmp_path
    assert "cannot be written" in fails(capsys, "run", model, *files)


@pytest.mark.parametrize("option", ["x", "x=", "=1x2", "x=1xtwo", "x=0x2x3x3", "x=1x-2", "x=1x²"])
def test_a_shape_must_be_of_the_form_shown(option, model, capsys):
    assert "is not of the form NAME=1x3x224x224" in fails(capsys, "info", model, "--input-shape", option)


def test_an_open_axis_says_how_to_give_it(model, capsys):
    assert "--input-shape x=1x2x3x3" in fails(capsys, "info", model)


def test_unknown_models_are_told_with_the_known_ones(capsys):
    assert "known are alexnet, densenet121, " in fails(capsys, "info", "resnet")


def test_info_shows_what_is_in_a_model(capsys):
    assert main(["engine", "info", "mobilenetv2"]) == EXIT_OK
    out = capsys.readouterr().out
    assert "input       x 1x3x224x224 float32" in out
    assert "output      y 1x1000 float32" in out
    assert "parameters  3,504,872" in out
    assert "300,774,272 multiply-accumulates" in out
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert lines["Conv"] == ["52", "-"]
    assert lines["FusedConv"] == ["-", "11"]
    assert lines["Chain"] == ["-", "17"]


def test_info_counts_weights_that_nodes_make(capsys):
    assert main(["engine", "info", str(LIGHT / "light_resnet50.onnx"), "--json"]) == EXIT_OK
    document = json.loads(capsys.readouterr().out)
    assert document["parameters"] == 25_557_032
    assert document["operators_optimised"]["FusedConv"] == 53
    assert document["inputs"] == [{"name": "gpu_0/data_0", "shape": [1, 3, 224, 224], "type": "float32"}]


def test_operators_lists_the_table(capsys):
    assert main(["engine", "operators"]) == EXIT_OK
    names = capsys.readouterr().out.split()
    assert names == sorted(names)
    assert {"Conv", "Gemm", "Softmax"} <= set(names)


@pytest.mark.parametrize("action", [[], ["run"], ["info"], ["operators"]])
def test_help_is_there(action, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["engine", *action, "--help"])
    assert caught.value.code == EXIT_OK
    assert "usage: powerlab engine" in capsys.readouterr().out


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.npz"
    write_npz(path, {"y": np.ones(3, np.float32)})
    with pytest.raises(ValueError, match="Object arrays"):
        write_npz(path, {"y": np.array([{}], dtype=object)})
    np.testing.assert_array_equal(read_npz(path)["y"], np.ones(3))
    assert list(tmp_path.iterdir()) == [path]


def test_writing_into_nothing_is_one_sentence(tmp_path):
    with pytest.raises(PowerlabError, match=r"out.npz cannot be written: No such file"):
        write_npz(tmp_path / "gone" / "out.npz", {})
