"""The benchmark of kernels times every convolution by each that is asked for, and the network by each."""

from __future__ import annotations

import json

import numpy as np
from engine_models import onnx_bytes
from onnx import helper

from bench.gpu import kernels
from powerlab.engine.codegen.convolutions.conv_shape import ConvShape


def test_each_kernel_computes_each_convolution_and_the_network(tmp_path, monkeypatch, capsys):
    random = np.random.default_rng(3)
    constants = {"v": random.standard_normal((16, 8, 3, 3)), "w": random.standard_normal((8, 16, 1, 1))}
    constants = {name: value.astype(np.float32) for name, value in constants.items()}
    nodes = [helper.make_node("Conv", ["x", "v"], ["c"], pads=[1] * 4), helper.make_node("Conv", ["c", "w"], ["y"])]
    model, kept = tmp_path / "convs.onnx", tmp_path / "kernels.json"
    model.write_bytes(onnx_bytes(nodes, {"x": (1, 8, 12, 12)}, constants=constants))
    words = ["--precision", "fp32", "--batch", "1", "--tiles", "2", "--kernels", "conv", "tiled", "--json", str(kept)]
    monkeypatch.setattr("sys.argv", ["kernels", str(model), *words])
    assert kernels.main() == 0
    (found,) = json.loads(kept.read_text())
    assert [[one["kernel"] for one in shape["methods"]] for shape in found["shapes"]] == [["conv", "tiled"]] * 2
    assert np.array(found["ns"]).shape[1] == 2
    assert np.min(found["ns"]) > 0
    said = capsys.readouterr().out
    assert "8->16 3x3 at 12x12" in said
    assert "network" in said


def test_operations_of_a_convolution_count_its_groups():
    shape = ConvShape(images=2, inputs=8, outputs=6, groups=2, kernel=(3, 3), in_size=(5, 7), size=(5, 7))
    assert kernels.operations(shape) == 2 * 2 * 35 * 6 * 4 * 9
