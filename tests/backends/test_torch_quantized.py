"""torch computes quantized networks in oneDNN's bytes, within a step of the file's numbers; the rest it refuses.

Where torch is not installed, as in CI, the built-in engine alone is held to the same numbers.
"""

from __future__ import annotations

from unittest.mock import MagicMock

import numpy as np
import pytest
from backend_answers import HERE, loaded
from engine_models import onnx_bytes, run_ort
from onnx import helper

from powerlab.backends.torch import TorchBackend
from powerlab.backends.torch_bytes import BYTES
from powerlab.backends.torch_post_ops import with_post_ops
from powerlab.domain.errors import PowerlabError
from powerlab.domain.workload import Processor
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import onnx_bytes as written
from powerlab.engine.ops.quantization import QUANTIZED
from powerlab.engine.passes import optimise_for_others
from powerlab.engine.quantization.precisions import in_precision

ENGINES = sorted({"builtin", "torch"} & {"builtin", *HERE})
ALIKE = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
BATCH = 2
UNLIKE = {"kernel_shape": (3, 3), "pads": (0, 1, 2, 0)}
TWICE = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@pytest.fixture(autouse=True)
def _own_calibrations(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))


def _weights(*shape, seed=5):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / np.sqrt(np.prod(shape[1:]))


def _residuals():
    """Sums that oneDNN writes over what they read, or must not; slopes, bounds, and windows that begin outside."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], strides=(2, 2), **UNLIKE),
        helper.make_node("LeakyRelu", ["a"], ["b"], alpha=0.2),
        helper.make_node("Conv", ["b", "w2"], ["c"], group=4, dilations=(2, 2), kernel_shape=(3, 3), pads=(2, 2, 2, 2)),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("Clip", ["d", "low", "high"], ["e"]),
        helper.make_node("Conv", ["e", "w3"], ["f"], group=16, **ALIKE),
        helper.make_node("Add", ["e", "f"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Conv", ["h", "w5"], ["u"], **ALIKE),
        helper.make_node("Add", ["u", "h"], ["v"]),
        helper.make_node("Relu", ["v"], ["z"]),
        helper.make_node("Conv", ["z", "w4"], ["i"], kernel_shape=(1, 1)),
        helper.make_node("Add", ["i", "e"], ["j"]),
        helper.make_node("Conv", ["j", "w4", "b1"], ["k"], kernel_shape=(1, 1)),
        helper.make_node("LeakyRelu", ["k"], ["l"], alpha=0.3),
        helper.make_node("Add", ["l", "e"], ["m"]),
        helper.make_node("MaxPool", ["m"], ["n"], kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        helper.make_node("Conv", ["m", "w5"], ["o"], strides=(2, 2), **ALIKE),
        helper.make_node("Add", ["o", "n"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["t"], kernel_shape=(2, 2), strides=(1, 1), pads=(0, 0, 1, 1)),
        helper.make_node("Conv", ["t", "w5"], ["p"], **ALIKE),
        helper.make_node("GlobalAveragePool", ["p"], ["q"]),
        helper.make_node("Flatten", ["q"], ["r"]),
        helper.make_node("Gemm", ["r", "w6", "b6"], ["y"], transB=1),
    ]
    constants = {
        "w1": _weights(16, 3, 3, 3),
        "b1": _weights(16),
        "w2": 2 * _weights(16, 4, 3, 3),
        "w6": _weights(10, 16),
    }
    constants |= {"w3": _weights(16, 1, 3, 3), "w4": _weights(16, 16, 1, 1), "w5": _weights(16, 16, 3, 3)}
    bounds = {"low": np.float32(-0.6), "high": np.float32(1.2)}
    return onnx_bytes(nodes, {"x": (1, 3, 17, 14)}, constants={**constants, "b6": _weights(10), **bounds})


def _branches():
    """Channels that are joined, scaled and shifted, pixels that are averaged and repeated, and a sum of such."""
    norm = {name: np.abs(_weights(48, seed=seed)) + 0.5 for seed, name in enumerate(("gamma", "beta", "mean", "var"))}
    norm["gamma"][3] = -0.7
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], **ALIKE),
        helper.make_node("AveragePool", ["a"], ["b"], kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
        helper.make_node("AveragePool", ["a"], ["c"], kernel_shape=(2, 2), strides=(2, 2)),
        helper.make_node("Add", ["b", "c"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("Resize", ["e", "", "scales"], ["f"], mode="nearest", **TWICE),
        helper.make_node("Conv", ["f", "w3"], ["j"], **ALIKE),
        helper.make_node("Relu", ["j"], ["k"]),
        helper.make_node("Concat", ["f", "a", "k"], ["g"], axis=1),
        helper.make_node("BatchNormalization", ["g", "gamma", "beta", "mean", "var"], ["h"]),
        helper.make_node("Relu", ["h"], ["i"]),
        helper.make_node("Conv", ["i", "w2"], ["l"], kernel_shape=(1, 1)),
        helper.make_node("Concat", ["l", "g"], ["m"], axis=1),
        helper.make_node("BatchNormalization", ["m", "gamma2", "beta2", "mean2", "var2"], ["n"]),
        helper.make_node("Conv", ["n", "w4"], ["y"], kernel_shape=(1, 1)),
    ]
    constants = {"w1": _weights(16, 3, 3, 3), "w2": _weights(16, 48, 1, 1), "w3": _weights(16, 16, 3, 3)}
    constants |= {f"{name}2": np.resize(values, 64) for name, values in norm.items()} | {"w4": _weights(16, 64, 1, 1)}
    constants["scales"] = np.array([1, 1, 2, 2], np.float32)
    return onnx_bytes(nodes, {"x": (1, 3, 12, 8)}, constants={**constants, **norm})


def _rows():
    """A block of a transformer: products of rows, what is added to them, and Gelu between."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Add", ["a", "b1"], ["b"]),
        helper.make_node("Gelu", ["b"], ["c"]),
        helper.make_node("MatMul", ["c", "w2"], ["d"]),
        helper.make_node("Add", ["d", "x"], ["e"]),
        helper.make_node("MatMul", ["e", "w3"], ["y"]),
    ]
    constants = {"w1": 3 * _weights(24, 64), "b1": _weights(64), "w2": _weights(64, 24), "w3": _weights(24, 24)}
    return onnx_bytes(nodes, {"x": (1, 5, 24)}, constants=constants, opset=20)


def _volumes():
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], kernel_shape=(3, 3, 3), pads=(1, 1, 1, 1, 1, 1)),
        helper.make_node("Conv", ["a", "w2"], ["b"], kernel_shape=(3, 3, 3), pads=(1, 1, 1, 1, 1, 1)),
        helper.make_node("Add", ["b", "a"], ["c"]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w2"], ["y"], kernel_shape=(3, 3, 3), strides=(1, 2, 2)),
    ]
    constants = {"w1": _weights(8, 3, 3, 3, 3), "w2": _weights(8, 8, 3, 3, 3)}
    return onnx_bytes(nodes, {"x": (1, 3, 5, 8, 9)}, constants=constants)


def _sound():
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], kernel_shape=(5,), pads=(4, 0)),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["y"], kernel_shape=(3,), pads=(4, 4), dilations=(4,)),
    ]
    return onnx_bytes(nodes, {"x": (1, 4, 40)}, constants={"w1": _weights(8, 4, 5), "w2": _weights(8, 8, 3)})


def _views():
    """A pixel that is a row of channels too, which is read after a sum that could be written over it."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], **ALIKE),
        helper.make_node("GlobalAveragePool", ["a"], ["b"]),
        helper.make_node("Flatten", ["b"], ["c"]),
        helper.make_node("Conv", ["b", "w2"], ["d"], kernel_shape=(1, 1)),
        helper.make_node("Conv", ["d", "w2"], ["e"], kernel_shape=(1, 1)),
        helper.make_node("Add", ["e", "b"], ["f"]),
        helper.make_node("Flatten", ["f"], ["g"]),
        helper.make_node("Gemm", ["c", "w3"], ["h"], transB=1),
        helper.make_node("Gemm", ["g", "w3"], ["i"], transB=1),
        helper.make_node("Add", ["h", "i"], ["y"]),
    ]
    constants = {"w1": _weights(16, 3, 3, 3), "w2": 3 * _weights(16, 16, 1, 1), "w3": _weights(16, 16)}
    return onnx_bytes(nodes, {"x": (1, 3, 8, 8)}, constants=constants)


NETWORKS = {
    "residuals": _residuals,
    "branches": _branches,
    "rows": _rows,
    "views": _views,
    "volumes": _volumes,
    "sound": _sound,
}


def quantized(path):
    return in_precision(load_graph(path, batch_size=BATCH), path, "int8")


def steps_between(found, expected):
    """Return by how many of 255 steps of the expected range numbers differ."""
    return np.abs(found - expected) / np.ptp(expected) * 255


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_in_bytes_gives_the_numbers_of_its_file(engine, name, tmp_path):
    """The file rounds once more before a sum; beside the built-in engine, which does not, hardly a byte differs."""
    path = tmp_path / "net.onnx"
    path.write_bytes(NETWORKS[name]())
    ours, backend = (loaded(one, path, BATCH, precision="int8") for one in ("builtin", engine))
    inputs = backend.inputs(3)
    expected, near = run_ort(written(quantized(path)), inputs, as_written=True)["y"], ours.run(inputs)["y"]
    for found in (backend.run(inputs)["y"], backend.run(inputs)["y"]):
        assert steps_between(found, expected).max() < 4
        assert steps_between(found, near).max() < 2
        assert (steps_between(found, near) > 0.5).mean() < 0.05


def test_the_networks_of_these_tests_have_every_operator_on_bytes(tmp_path):
    seen = set()
    for make in NETWORKS.values():
        path = tmp_path / "net.onnx"
        path.write_bytes(make())
        seen |= {node.op_type for node in optimise_for_others(quantized(path)).nodes}
    own = {"QuantLookup", "QuantPad", "QuantSlice"}  # made for the engine's own kernels
    assert seen >= set(BYTES) == QUANTIZED - own


def test_a_gelu_between_bytes_is_computed_before_they_are_rounded(tmp_path):
    path = tmp_path / "rows.onnx"
    path.write_bytes(_rows())
    graph = optimise_for_others(quantized(path))
    fused = with_post_ops(graph)
    assert "Gelu" in {node.op_type for node in graph.nodes}
    assert "Gelu" not in {node.op_type for node in fused.nodes}
    assert [node.attributes.get("function") for node in fused.nodes if node.op_type == "QuantConv"] == [
        "gelu",
        None,
        None,
    ]


def test_a_gelu_that_something_else_reads_stays_in_floats(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("Gelu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "w2"], ["c"]),
        helper.make_node("Mul", ["c", "b"], ["y"]),
    ]
    path = tmp_path / "gate.onnx"
    constants = {"w1": _weights(24, 24), "w2": _weights(24, 24, seed=6)}
    path.write_bytes(onnx_bytes(nodes, {"x": (1, 5, 24)}, constants=constants, opset=20))
    graph = optimise_for_others(quantized(path))
    assert with_post_ops(graph).nodes == graph.nodes


def _of_others(kind, zero):
    """Return a file as other tools write them: bytes of a kind, weights of one step, a ReLU that the bytes cut off."""
    constants = {"w": (np.arange(-72, 72) // 2).astype(np.int8).reshape(2, 8, 3, 3), "weight_step": np.float32(0.02)}
    constants |= {
        "step": np.float32(0.03),
        "zero": kind(zero),
        "wide": np.float32(0.2),
        "least": kind(np.iinfo(kind).min),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "step", "zero"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "weight_step"], ["wd"]),
        helper.make_node("Conv", ["xd", "wd"], ["a"], **UNLIKE),
        helper.make_node("QuantizeLinear", ["a", "wide", "least"], ["aq"]),
        helper.make_node("DequantizeLinear", ["aq", "wide", "least"], ["y"]),
    ]
    return onnx_bytes(nodes, {"x": (1, 8, 6, 7)}, constants=constants, opset=21)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("kind", "zero"), [(np.uint8, 128), (np.int8, 5)])
def test_a_file_of_signed_or_unsigned_bytes_is_computed_as_it_says(engine, kind, zero, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_bytes(_of_others(kind, zero))
    backend = loaded(engine, path)
    inputs = backend.inputs(4)
    expected, found = run_ort(path.read_bytes(), inputs, as_written=True)["y"], backend.run(inputs)["y"]
    assert (expected == 0).any()
    np.testing.assert_allclose(found, expected, atol=0.201)
    assert (np.abs(found - expected) > 0.1).mean() < 0.05


@pytest.mark.parametrize(
    ("precision", "kind", "reason"),
    [
        ("fp32", np.uint16, "node '.*' .*is not translated for torch yet"),
        ("bf16", np.uint8, "node '.*' is not translated for torch yet; use another engine"),
    ],
)
def test_what_is_not_computed_in_bytes_is_refused_by_name(precision, kind, reason, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_bytes(_of_others(kind, 128))
    with pytest.raises(PowerlabError, match=reason):
        TorchBackend(optimise_for_others(load_graph(path)), MagicMock(), precision)


@pytest.mark.parametrize(
    "lacks",
    [{"backends.mkldnn.is_available.return_value": False}, {"ops.onednn": MagicMock(spec=["qconv2d_pointwise"])}],
)
def test_a_pytorch_without_the_operators_of_onednn_is_refused(lacks, tmp_path):
    path = tmp_path / "other.onnx"
    path.write_bytes(_of_others(np.uint8, 128))
    torch = MagicMock(**{"__version__": "2.14.1", **lacks})
    with pytest.raises(PowerlabError, match=r"^PyTorch 2\.14\.1 lacks what .+ of oneDNN, .+ or use another engine"):
        TorchBackend(optimise_for_others(load_graph(path)), torch, "fp32")


@pytest.mark.parametrize(
    ("engine", "more", "offered"),
    [
        ("torch", {"precision": "int8", "processor": Processor.GPU}, "fp32 or fp16 or bf16"),
        ("torch", {"precision": "int8w"}, "fp32 or bf16 or int8"),
        ("torch-compile", {"precision": "int8"}, "fp32 or bf16"),
    ],
)
def test_other_ways_to_compute_with_bytes_are_refused(engine, more, offered):
    with pytest.raises(PowerlabError, match=rf"^the engine {engine} computes in {offered} here, not in 'int8"):
        loaded(engine, "squeezenet", **more)
