"""ncnn computes quantized networks in bytes, from the calibration of all engines; what it cannot is refused by name."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from backend_answers import loaded
from engine_models import onnx_bytes
from onnx import helper

from powerlab.backends.ncnn_bytes import without_bytes
from powerlab.backends.ncnn_model import ncnn_model
from powerlab.backends.packages import installed_version
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise_for_others
from powerlab.engine.quantization.precisions import in_precision
from requires import missing


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    if installed_version("ncnn") is None:
        missing("ncnn is not installed (pip install 'powerlab[peers]')")
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))


def sqnr_db(exact, found):
    exact = exact.astype(np.float64)
    return 10 * np.log10(np.square(exact).sum() / np.square(exact - found).sum())


def answers(engine, model, precision):
    backend = loaded(engine, model, precision=precision)
    return next(iter(backend.run(backend.inputs(1)).values()))


@pytest.mark.parametrize(("model", "least_db"), [("squeezenet", 40), ("mobilenetv2", 28), ("resnet18", 33)])
def test_a_network_in_bytes_is_near_floats(model, least_db):
    exact, found = answers("builtin", model, "fp32"), answers("ncnn", model, "int8")
    assert least_db < sqnr_db(exact, found) < 60


def layers(graph):
    found = without_bytes(graph)
    return ncnn_model(optimise_for_others(found.graph), found.largest)[0].splitlines()[2:]


def test_convolutions_hand_bytes_on_where_only_convolutions_read_them():
    """MobileNetV2: expansions and depthwise layers are read by one each, projections also by sums."""
    made = layers(in_precision(load_graph("mobilenetv2", batch_size=1), "mobilenetv2", "int8"))
    computing = [line.split() for line in made if line.startswith(("Convolution", "InnerProduct"))]
    kinds = [next((word for word in words if word.startswith("8=")), "") for words in computing]
    assert len(kinds) == 53
    assert set(kinds) == {"8=1", "8=101"}
    assert kinds.count("8=101") >= 2 * 17


def test_a_layer_that_stays_in_floats_reads_floats(tmp_path):
    """Of two layers that read the same, only one through bytes."""
    constants = {"w": np.ones((1, 1, 1, 1), np.float32), "step": np.float32(0.5), "middle": np.uint8(128)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "middle"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "step", "middle"], ["d"]),
        helper.make_node("Conv", ["d", "w"], ["a"]),
        helper.make_node("Conv", ["x", "w"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    path = tmp_path / "both.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (1, 1, 4, 5)}, constants=constants))
    assert not without_bytes(load_graph(path)).largest


def cut_off(weights=MappingProxyType({"axis": 0}), **more):
    """Return a file in which only the range of bytes says that nothing is below 0; it computes twice the magnitude."""
    constants = {
        "w": np.array([[[[1.0]]], [[[-1.0]]]], np.float32),
        "bytes": np.full((1, 2, 1, 1), 40, np.int8),
        "weight_step": np.array([0.05], np.float32),
        "step": np.float32(0.01),
        "zero": np.uint8(0),
        "middle": np.uint8(128),
        "wide": np.float32(0.02),
        **more,
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "wide", "middle"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "wide", "middle"], ["xd"]),
        helper.make_node("Conv", ["xd", "w"], ["a"]),
        helper.make_node("QuantizeLinear", ["a", "step", "zero"], ["aq"]),
        helper.make_node("DequantizeLinear", ["aq", "step", "zero"], ["ad"]),
        helper.make_node("DequantizeLinear", ["bytes", "weight_step"], ["v"], **weights),
        helper.make_node("Conv", ["ad", "v"], ["y"]),
    ]
    return onnx_bytes(nodes, {"x": (1, 1, 4, 5)}, constants=constants, opset=21)


@pytest.mark.parametrize("zeros", [(0, 128, np.uint8), (-128, 0, np.int8)])
def test_what_only_the_range_of_bytes_cuts_off_is_cut_off(zeros, tmp_path):
    """ONNX Runtime's tools drop a ReLU in front of bytes that begin at 0."""
    zero, middle, kind = zeros
    path = tmp_path / "cut.onnx"
    path.write_bytes(cut_off(zero=kind(zero), middle=kind(middle)))
    backend = loaded("ncnn", path)
    x = backend.inputs(1)
    assert (x["x"] < -0.5).any()
    np.testing.assert_allclose(next(iter(backend.run(x).values())), 2 * np.abs(x["x"]), atol=0.1)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"zero": np.uint16(0), "middle": np.uint16(128)}, "makes uint16 of floats, and ncnn bytes alone"),
        (
            {"weight_step": np.full((1, 1, 1, 1), 0.05, np.float32), "weights": {"axis": 1, "block_size": 2}},
            "one a block, which ncnn does not take",
        ),
    ],
)
def test_other_integers_are_refused_by_name(change, reason, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_bytes(cut_off(**change))
    with pytest.raises(PowerlabError, match=reason):
        loaded("ncnn", path)


def test_products_of_rows_are_refused_by_name():
    with pytest.raises(PowerlabError, match="of several rows, in floats or with scales of its own"):
        loaded("ncnn", "vit-tiny", precision="int8")
