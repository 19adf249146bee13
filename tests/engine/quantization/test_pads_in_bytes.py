"""Images padded with their own pixels between convolutions of bytes: rounded first, then moved, on every tier."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from onnx import helper
from quantized_models import model_bytes

from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.calibrate import calibrate, random_batches
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers

CHANNELS = 20
NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def network(mode):
    """As networks that paint pictures are: a norm of each channel between convolutions, an image made larger."""
    generator = np.random.default_rng(3)

    def weights(*shape):
        return (generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    def pad(x, pads, y):
        return helper.make_node("Pad", [x, pads], [y], mode=mode)

    nodes = [
        pad("x", "around", "p0"),
        helper.make_node("Conv", ["p0", "w0"], ["c0"]),
        helper.make_node("InstanceNormalization", ["c0", "scale", "shift"], ["n0"]),
        helper.make_node("Relu", ["n0"], ["r0"]),
        pad("r0", "one side", "p1"),
        helper.make_node("Conv", ["p1", "w1"], ["c1"]),
        helper.make_node("InstanceNormalization", ["c1", "scale", "shift"], ["n1"]),
        helper.make_node("LeakyRelu", ["n1"], ["r1"], alpha=0.2),
        helper.make_node("Resize", ["r1", "", "sizes"], ["u"], **NEAREST),
        pad("u", "around", "p2"),
        helper.make_node("Conv", ["p2", "w2"], ["y"]),
    ]
    constants = {
        "around": np.array([0, 0, 2, 2, 0, 0, 2, 2]),
        "one side": np.array([0, 0, 1, 0, 0, 0, 0, 3]),
        "sizes": np.array([1, 1, 2, 3], np.float32),
        "scale": generator.uniform(0.5, 2, CHANNELS).astype(np.float32),
        "shift": generator.standard_normal(CHANNELS).astype(np.float32),
        "w0": weights(CHANNELS, 3, 5, 5),
        "w1": weights(CHANNELS, CHANNELS, 3, 3),
        "w2": weights(3, CHANNELS, 5, 5),
    }
    float32 = onnx.TensorProto.FLOAT
    return model_bytes(nodes, {"x": (float32, (2, 3, 9, 11))}, {"y": (float32, None)}, constants, 17)


def written(mode, folder):
    """Return the network in floats, in integers, and the inputs of one run."""
    floats, integers = folder / "floats.onnx", folder / "integers.onnx"
    floats.write_bytes(network(mode))
    graph = prepared_for_quantization(load_graph(floats))
    write_onnx(quantize_graph(graph, calibrate(graph, random_batches(graph, 32)), Options()).graph, integers)
    return floats, integers, random_batches(graph, 1, seed=5)[0]


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_floats_and_bytes_are_padded_as_onnx_runtime_pads_them(mode, tmp_path):
    """A byte may be off by one where a norm's result lies in the middle of two, which the last layer spreads."""
    floats, integers, inputs = written(mode, tmp_path)
    exact = run_ort(str(floats), inputs)["y"]
    rounded = run_ort(str(integers), inputs, as_written=True)["y"]
    for tier in available_tiers():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(TIER_VARIABLE, tier.name)
            found = Session(floats, threads=2).run(inputs)["y"]
            in_bytes = Session(integers, threads=2).run(inputs)["y"]
        assert np.abs(found - exact).max() <= 1e-5 * np.abs(exact).max(), tier.name
        assert np.abs(in_bytes - rounded).max() <= 0.02 * np.abs(rounded).max(), tier.name
        assert np.mean(in_bytes != rounded) <= 0.05, tier.name


def test_what_is_padded_is_bytes_already(tmp_path):
    """And what stands between a norm and the next layer is part of the norm."""
    nodes = optimise(load_graph(written("reflect", tmp_path)[1])).nodes
    assert [node.op_type for node in nodes] == [
        *("Quantize", "QuantPad", "QuantConv", "Dequantize", "GroupNorm"),
        *("Quantize", "QuantPad", "QuantConv", "Dequantize", "GroupNorm"),
        *("Quantize", "QuantResize", "QuantPad", "QuantConv", "Dequantize"),
    ]


def test_pads_that_others_read_too_stay_floats(tmp_path):
    """And so do those that reach over other axes than the pixels'."""
    nodes = [
        helper.make_node("Pad", ["x", "around"], ["p"], mode="reflect"),
        helper.make_node("QuantizeLinear", ["p", "step", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "step", "zero"], ["d"]),
        helper.make_node("Add", ["p", "d"], ["s"]),
        helper.make_node("Pad", ["s", "channels"], ["t"], mode="edge"),
        helper.make_node("QuantizeLinear", ["t", "step", "zero"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "step", "zero"], ["y"]),
    ]
    constants = {
        "around": np.array([0, 0, 1, 2, 0, 0, 2, 1]),
        "channels": np.array([0, 1, 0, 0, 0, 2, 1, 0]),
        "step": np.float32(0.05),
        "zero": np.uint8(120),
    }
    float32 = onnx.TensorProto.FLOAT
    data = model_bytes(nodes, {"x": (float32, (2, 3, 6, 5))}, {"y": (float32, None)}, constants, 17)
    inputs = {"x": np.random.default_rng(0).standard_normal((2, 3, 6, 5), np.float32)}
    (tmp_path / "model.onnx").write_bytes(data)
    session = Session(tmp_path / "model.onnx", threads=1)
    assert sum(kernel.startswith("pad_reflect") for kernel, _ in session.steps()) == 1
    np.testing.assert_allclose(session.run(inputs)["y"], run_ort(data, inputs, as_written=True)["y"], atol=1e-6)
