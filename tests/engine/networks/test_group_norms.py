"""Group normalisations of images stay in blocks and compute what ONNX Runtime computes."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_group_norms_between_convolutions_stay_in_blocks(groups):
    """As PyTorch exports them: views around an instance normalisation, a factor and a summand a channel."""
    generator = np.random.default_rng(groups)
    channels = 32 * groups
    x = {"x": generator.standard_normal((2, channels, 6, 5), np.float32)}
    constants = {
        "w": generator.standard_normal((channels, channels, 1, 1), np.float32) / 4,
        "v": generator.standard_normal((8, channels, 3, 3), np.float32) / 16,
        "groups": np.array([0, groups, -1]),
        "image": np.array([2, channels, 6, 5]),
        "one": np.ones(groups, np.float32),
        "none": np.zeros(groups, np.float32),
        "scale": generator.standard_normal((1, channels, 1, 1), np.float32),
        "shift": generator.standard_normal((1, channels, 1, 1), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "groups"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "one", "none"], ["n"]),
        helper.make_node("Reshape", ["n", "image"], ["i"]),
        helper.make_node("Mul", ["i", "scale"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    data = model_bytes(nodes, x, constants=constants)
    check_by_ort(data, x, rtol=1e-3, atol=1e-4)
    session = Session(optimise(load_bytes(data)), threads=2)
    assert [kernel.split("_f32")[0] for kernel, _ in session.steps()][2:-2] == ["group_norm"]


@pytest.mark.parametrize("groups", [1, 4])
def test_group_norms_between_convolutions_of_rows_stay_in_blocks(groups):
    """Of sound, as PyTorch exports them: three axes, and a PRelu of one slope before each norm."""
    generator = np.random.default_rng(groups)
    x = {"x": generator.standard_normal((2, 32, 50), np.float32)}
    constants = {
        "w": generator.standard_normal((32, 32, 1), np.float32) / 4,
        "v": generator.standard_normal((8, 32, 3), np.float32) / 8,
        "slope": np.full((1, 1), 0.25, np.float32),
        "groups": np.array([0, groups, -1]),
        "rows": np.array([2, 32, 50]),
        "one": generator.uniform(0.5, 2, groups).astype(np.float32),
        "none": generator.standard_normal(groups).astype(np.float32),
        "scale": generator.standard_normal((32, 1), np.float32),
        "shift": generator.standard_normal((32, 1), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("PRelu", ["c", "slope"], ["p"]),
        helper.make_node("Reshape", ["p", "groups"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "one", "none"], ["n"]),
        helper.make_node("Reshape", ["n", "rows"], ["i"]),
        helper.make_node("Mul", ["i", "scale"], ["m"]),
        helper.make_node("Add", ["m", "shift"], ["a"]),
        helper.make_node("Conv", ["a", "v"], ["y"], pads=[1, 1]),
    ]
    data = model_bytes(nodes, x, constants=constants)
    check_by_ort(data, x, rtol=1e-3, atol=1e-4)
    graph = optimise(load_bytes(data))
    assert [node.op_type for node in graph.nodes if node.op_type != "Reshape"] == [
        "FusedConv",
        "GroupNorm",
        "FusedConv",
    ]
