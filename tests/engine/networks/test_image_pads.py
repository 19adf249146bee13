"""Images, and rows of pixels, padded with pixels of their own are copied once, in whatever layout they have."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.passes import optimise


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def checked(nodes, x, constants):
    """Return the stems of the kernels that compute what ONNX Runtime computes."""
    data = model_bytes(nodes, {"x": x}, constants=constants)
    check_by_ort(data, {"x": x}, rtol=1e-4, atol=1e-4)
    steps = Session(optimise(load_bytes(data)), threads=2).steps()
    return [kernel.split("_f32")[0].split("_u32")[0] for kernel, _ in steps]


@pytest.mark.parametrize("mode", ["reflect", "edge"])
@pytest.mark.parametrize(
    ("shape", "pads"),
    [
        ((2, 3, 5, 6), (0, 0, 4, 0, 0, 0, 1, 5)),
        ((1, 3, 1, 6), (0, 0, 0, 3, 0, 0, 0, 0)),
        ((2, 4, 7), (0, 0, 2, 0, 0, 6)),
    ],
)
def test_an_input_is_padded_where_it_lies(mode, shape, pads):
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)]
    kernels = checked(nodes, numbers(*shape), {"pads": np.array(pads)})
    assert [kernel for kernel in kernels if kernel.startswith("pad")] == [f"pad_{mode}"]


def test_an_edge_reaches_as_far_as_wanted():
    nodes = [helper.make_node("Pad", ["x", "pads"], ["y"], mode="edge")]
    assert "pad_edge" in checked(nodes, numbers(1, 2, 3, 2), {"pads": np.array([0, 0, 9, 7, 0, 0, 1, 8])})


def test_rows_of_pixels_between_convolutions_stay_in_blocks():
    """As sounds are padded: one copy, and no other step but the convolutions and the ways in and out."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Pad", ["c", "pads"], ["p"], mode="reflect"),
        helper.make_node("Conv", ["p", "v"], ["y"]),
    ]
    constants = {"w": numbers(20, 6, 1), "v": numbers(9, 20, 3) / 8, "pads": np.array([0, 0, 3, 0, 0, 2])}
    kernels = checked(nodes, numbers(2, 6, 30), constants)
    assert kernels[-4:] == ["conv_direct", "pad_reflect", "conv_direct", "reorder_to_planes"]


@pytest.mark.parametrize("groups", [20, 5, 1])
@pytest.mark.parametrize(
    "activation", [("Relu", {}), ("LeakyRelu", {"alpha": 0.3}), ("Clip", {})], ids=lambda one: one[0]
)
def test_an_activation_behind_a_norm_is_part_of_it(groups, activation):
    """Norms of channels stay in blocks, those of groups that fill none go to planes."""
    operator, attributes = activation
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Reshape", ["c", "groups"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "scale", "shift"], ["n"]),
        helper.make_node("Reshape", ["n", "image"], ["i"]),
        helper.make_node(operator, ["i", *(("low", "high") if operator == "Clip" else ())], ["y"], **attributes),
    ]
    constants = {
        "w": numbers(20, 3, 3, 3),
        "groups": np.array([2, groups, -1]),
        "image": np.array([2, 20, 7, 9]),
        "scale": np.linspace(0.5, 2, groups, dtype=np.float32),
        "shift": np.linspace(-1, 1, groups, dtype=np.float32),
        "low": np.float32(-0.4),
        "high": np.float32(0.7),
    }
    kernels = checked(nodes, numbers(2, 3, 9, 11), constants)
    assert ("instance_norm" in kernels) == (groups == 20)
    assert not any(kernel.startswith("clamp") for kernel in kernels)
