"""LiteRT computes quantized networks from the same bytes; what it cannot say of them is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import loaded
from engine_models import onnx_bytes
from onnx import helper

from powerlab.backends.packages import installed_version
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.passes import optimise_for_others
from powerlab.engine.quantization.precisions import in_precision
from requires import missing

PLAIN = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
TWICE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _weights(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))


def _residual():
    """A first layer whose pool pads, a residual, a whole plane's mean, and what is fully connected."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], **PLAIN),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        helper.make_node("Conv", ["c", "w2", "b2"], ["d"], **PLAIN),
        helper.make_node("Add", ["d", "c"], ["e"]),
        helper.make_node("Relu", ["e"], ["f"]),
        helper.make_node("Clip", ["f", "low", "high"], ["g"]),
        helper.make_node("GlobalAveragePool", ["g"], ["h"]),
        helper.make_node("Flatten", ["h"], ["i"]),
        helper.make_node("Gemm", ["i", "w3", "b3"], ["y"], transB=1),
    ]
    constants = {"w1": _weights(16, 3, 3, 3), "w2": _weights(16, 16, 3, 3), "b2": _weights(16), "w3": _weights(10, 16)}
    bounds = {"low": np.float32(0), "high": np.float32(1.5)}
    return onnx_bytes(nodes, {"x": (2, 3, 12, 10)}, constants={**constants, "b3": _weights(10), **bounds})


def _branches():
    """Depthwise and strided convolutions, a slope, pixels repeated, branches of two scales, numbers a channel."""
    norm = {name: np.abs(_weights(32, seed=seed)) + 0.5 for seed, name in enumerate(("gamma", "beta", "mean", "var"))}
    norm["gamma"][3] = -0.7
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], strides=(2, 2), **PLAIN),
        helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.1),
        helper.make_node("Conv", ["b", "w2"], ["c"], group=16, **PLAIN),
        helper.make_node("AveragePool", ["c"], ["d"], kernel_shape=(2, 2), strides=(2, 2)),
        helper.make_node("Resize", ["d", "", "scales"], ["e"], mode="nearest", **TWICE),
        helper.make_node("Concat", ["e", "b"], ["f"], axis=1),
        helper.make_node("BatchNormalization", ["f", "gamma", "beta", "mean", "var"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Conv", ["h", "w3"], ["i"], kernel_shape=(1, 1)),
        helper.make_node("Conv", ["i", "w4"], ["y"], dilations=(2, 2), kernel_shape=(3, 3), pads=(2, 2, 2, 2)),
    ]
    constants = {"w1": _weights(16, 3, 3, 3), "w2": _weights(16, 1, 3, 3), "w3": _weights(16, 32, 1, 1)}
    constants |= {"w4": _weights(8, 16, 3, 3), "scales": np.array([1, 1, 2, 2], np.float32), **norm}
    return onnx_bytes(nodes, {"x": (1, 3, 16, 12)}, constants=constants)


NETWORKS = {"residual": _residual, "branches": _branches}


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    if installed_version("litert") is None:
        missing("litert is not installed (pip install 'powerlab[peers]')")
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.onnx"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_quantized_network_gives_nearly_the_built_in_engines_answers(name, path):
    path.write_bytes(NETWORKS[name]())
    ours, floats, theirs = (
        loaded(engine, path, precision=precision)
        for engine, precision in (("builtin", "int8"), ("builtin", "fp32"), ("litert", "int8"))
    )
    inputs = ours.inputs(3)
    expected, exact, found = (one.run(inputs)["y"] for one in (ours, floats, theirs))
    noise = np.square(expected - exact).sum()
    assert noise > 0
    assert np.square(found - expected).sum() < 5 * noise, "no further from it than a few roundings"
    assert np.square(found - exact).sum() < 1e-3 * np.square(exact).sum()


def test_the_networks_of_these_tests_have_every_operator_on_bytes(path):
    seen = set()
    for make in NETWORKS.values():
        path.write_bytes(make())
        graph = load_graph(path)
        seen |= {node.op_type for node in optimise_for_others(in_precision(graph, path, "int8")).nodes}
    own = {
        "QuantLookup",
        "QuantPad",
        "QuantSlice",
        "QuantVolumeConv",
    }  # made for the engine's own kernels, or of volumes
    assert seen >= QUANTIZED - own


def test_an_average_that_counts_what_is_beyond_the_image_is_refused_by_name(path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], **PLAIN),
        helper.make_node("AveragePool", ["a"], ["b"], count_include_pad=1, strides=(1, 1), **PLAIN),
        helper.make_node("Conv", ["b", "w2"], ["y"], **PLAIN),
    ]
    constants = {"w": _weights(16, 3, 3, 3), "w2": _weights(8, 16, 3, 3)}
    path.write_bytes(onnx_bytes(nodes, {"x": (1, 3, 8, 8)}, constants=constants))
    with pytest.raises(PowerlabError, match=r"averages beyond its image in a way that LiteRT does not; use another"):
        loaded("litert", path, precision="int8")
