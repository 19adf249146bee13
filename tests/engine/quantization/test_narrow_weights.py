"""Weights that stay in fewer bits: the same answers as with the rounded weights as floats, in less memory."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import onnx_bytes, relative_error
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.codegen.narrow.formats import FORMATS, RECURRENT_FORMATS, block_scale
from powerlab.engine.codegen.pairs.pack import bfloat16_bits
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.precisions import WEIGHT_ONLY, in_precision
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers

TIERS = [tier.name for tier in available_tiers()]


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    """Return a function that writes two linear layers for so many images."""
    folder = tmp_path_factory.mktemp("linear")

    def write(images, features=75, outputs=83):
        nodes = [
            helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("MatMul", ["r", "v"], ["y"]),
        ]
        constants = {"w": normal(1, outputs, features), "b": normal(2, outputs), "v": normal(3, outputs, 10)}
        path = folder / f"{images}x{features}.onnx"
        path.write_bytes(onnx_bytes(nodes, {"x": (images, features)}, constants=constants))
        return path

    return write


@pytest.fixture(scope="module")
def lstm(tmp_path_factory):
    """Return the path of an LSTM of 37 units over 5 steps of 2 sequences."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=37, direction="bidirectional")]
    constants = {"w": normal(4, 2, 148, 20), "r": normal(5, 2, 148, 37) / 6, "b": normal(6, 2, 296)}
    path = tmp_path_factory.mktemp("lstm") / "lstm.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (5, 2, 20)}, constants=constants))
    return path


def with_floats(path, precision):
    """Return a session of the model whose weights are rounded, but kept as floats."""
    return Session(optimise(in_precision(load_graph(path), path, precision)), threads=1)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("precision", WEIGHT_ONLY)
@pytest.mark.parametrize("images", [1, 5])
def test_linear_layers(precision, images, tier, linear, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    path = linear(images)
    session, x = Session(path, threads=1, precision=precision), {"x": normal(7, images, 75)}
    assert [kernel for kernel, _ in session.steps() if kernel.startswith("gemv")] == [
        f"gemv_{precision}_4x8_{tier}"
    ] * 2
    assert relative_error(session.run(x), with_floats(path, precision).run(x)) < 1e-5
    alike = Session(path, threads=3, precision=precision).run(x)
    np.testing.assert_array_equal(session.run(x)["y"], alike["y"])


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("precision", WEIGHT_ONLY)
def test_lstms(precision, tier, lstm, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    session, x = Session(lstm, threads=2, precision=precision), {"x": normal(8, 5, 2, 20)}
    kind = precision if precision in RECURRENT_FORMATS else "f32"
    assert f"lstm_{kind}_{tier}" in {kernel for kernel, _ in session.steps()}
    assert relative_error(session.run(x), with_floats(lstm, precision).run(x)) < 1e-5


def test_many_images_are_multiplied_in_floats(linear):
    path = linear(40)
    session, x = Session(path, threads=1, precision="int8w"), {"x": normal(9, 40, 75)}
    assert all("int8w" not in kernel for kernel, _ in session.steps())
    assert relative_error(session.run(x), with_floats(path, "int8w").run(x)) < 1e-6


@pytest.mark.parametrize(("precision", "share"), [("fp16w", 0.5), ("int8w", 0.27), ("int4w", 0.15)])
def test_weights_take_less_memory(precision, share):
    form = FORMATS[precision]
    assert form.packed(normal(10, 64, 1024), 16, 4).nbytes <= share * 4 * 64 * 1024


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32 - 1), st.floats(1e-30, 1e30))
def test_a_scale_of_a_block_is_a_bfloat16_that_reaches_its_largest_weight(seed, size):
    largest = np.abs(normal(seed, 8)) * np.float32(size) + np.float32(1e-35)
    scale = block_scale(largest)
    np.testing.assert_array_equal(scale, (bfloat16_bits(scale).astype(np.uint32) << np.uint32(16)).view(np.float32))
    assert np.all(scale * np.float32(7) >= largest * np.float32(0.9999999))
    assert np.all(scale <= np.maximum(largest / 7 * 1.01, np.finfo(np.float32).tiny * 1.01))
