"""Transforms, against numpy's, and the windows that go with them, against ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, run_ort
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise


def run(data, inputs):
    return Session(optimise(load_bytes(data)), threads=2).run(inputs)["y"]


def complex_of(value):
    return value[..., 0] + 1j * value[..., 1]


@pytest.mark.parametrize("length", [1, 2, 7, 16, 60])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [1, 2, -2])
def test_a_transform_is_numpys(length, parts, axis):
    x = np.random.default_rng(length).standard_normal((2, 16, 5, parts), dtype=np.float32)
    constants = {"n": np.array(length), "axis": np.array(axis)}
    source = x[..., 0] if parts == 1 else complex_of(x)
    along = axis if axis > 0 else axis + 3 + 1
    for inverse in (0, 1):
        nodes = [helper.make_node("DFT", ["x", "n", "axis"], ["y"], inverse=inverse)]
        found = run(onnx_bytes(nodes, {"x": x.shape}, constants=constants, opset=20), {"x": x})
        expected = (np.fft.ifft if inverse else np.fft.fft)(source, length, along)
        np.testing.assert_allclose(complex_of(found), expected, rtol=1e-4, atol=1e-5 * length)


@pytest.mark.parametrize("length", [2, 7, 16, 60])
def test_half_a_spectrum_and_back(length):
    x = np.random.default_rng(length).standard_normal((2, length, 1), dtype=np.float32)
    constants = {"n": np.array(length)}
    there = [helper.make_node("DFT", ["x", "n"], ["y"], onesided=1)]
    half = run(onnx_bytes(there, {"x": x.shape}, constants=constants, opset=20), {"x": x})
    np.testing.assert_allclose(complex_of(half), np.fft.rfft(x[..., 0]), rtol=1e-4, atol=1e-5 * length)
    back = [helper.make_node("DFT", ["x", "n"], ["y"], onesided=1, inverse=1)]
    again = run(onnx_bytes(back, {"x": half.shape}, constants=constants, opset=20), {"x": half})
    np.testing.assert_allclose(again, x, atol=1e-5)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("windowed", [False, True])
def test_frames_of_a_signal_are_transformed(onesided, windowed):
    generator = np.random.default_rng(1)
    x = generator.standard_normal((2, 100, 1), dtype=np.float32)
    window = generator.random(32, np.float32) if windowed else np.ones(32, np.float32)
    constants = {"step": np.array(10), "window": window, "length": np.array(32)}
    names = ["x", "step", "window" if windowed else "", "length"]
    nodes = [helper.make_node("STFT", names, ["y"], onesided=onesided)]
    found = run(onnx_bytes(nodes, {"x": x.shape}, constants=constants), {"x": x})
    frames = np.stack([x[:, begin : begin + 32, 0] * window for begin in range(0, 69, 10)], 1)
    expected = (np.fft.rfft if onesided else np.fft.fft)(frames)
    np.testing.assert_allclose(complex_of(found), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operator", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize(("size", "periodic"), [(1, 1), (2, 1), (11, 1), (2, 0), (11, 0)])
def test_windows_are_onnx_runtimes(operator, periodic, size):
    nodes = [
        helper.make_node(operator, ["n"], ["w"], periodic=periodic),
        helper.make_node("Mul", ["x", "w"], ["y"]),
    ]
    data = onnx_bytes(nodes, {"x": (1,)}, constants={"n": np.array(size)})
    inputs = {"x": np.ones(1, np.float32)}
    np.testing.assert_allclose(run(data, inputs), run_ort(data, inputs)["y"], atol=1e-6)


def test_bands_are_onnx_runtimes():
    numbers = {"bands": 8, "n": 64, "rate": 8000, "low": np.float32(0), "high": np.float32(4000)}
    nodes = [helper.make_node("MelWeightMatrix", list(numbers), ["m"]), helper.make_node("Mul", ["x", "m"], ["y"])]
    constants = {name: np.asarray(value) for name, value in numbers.items()}
    data = onnx_bytes(nodes, {"x": (1,)}, constants=constants)
    inputs = {"x": np.ones(1, np.float32)}
    np.testing.assert_allclose(run(data, inputs), run_ort(data, inputs)["y"], atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "attributes", "constants", "sentence"),
    [
        ((4, 8, 3), {}, {}, "needs real or complex numbers along its last axis"),
        ((4, 8, 2), {"onesided": 1}, {}, "which only the spectrum of real numbers can be"),
        ((4, 8, 1), {"onesided": 1, "inverse": 1}, {}, "which only the spectrum of real numbers can be"),
        ((4, 8, 1), {}, {"n": np.array(2**20)}, "transforms 1048576 elements"),
        ((4, 8, 1), {}, {"n": np.array(0)}, "transforms 0 elements"),
        ((4, 8, 1), {}, {"n": np.array(8), "axis": np.array(2)}, "transforms along its last axis"),
        ((4, 8, 1), {}, {"n": np.array([8, 8])}, "needs one integer as input 2"),
    ],
)
def test_a_transform_that_cannot_be_is_one_sentence(shape, attributes, constants, sentence):
    nodes = [helper.make_node("DFT", ["x", *constants], ["y"], "n", **attributes)]
    with pytest.raises(PowerlabError, match=f"DFT node 'n' {sentence}|DFT node 'n' .*{sentence}"):
        load_bytes(onnx_bytes(nodes, {"x": shape}, constants=constants, opset=20))


@pytest.mark.parametrize(
    ("step", "length", "sentence"),
    [(0, 8, "cuts frames of 8, 0 apart"), (4, 200, "cuts frames of 200"), (4, 0, "cuts frames of 0")],
)
def test_frames_that_cannot_be_cut_are_one_sentence(step, length, sentence):
    constants = {"step": np.array(step), "length": np.array(length)}
    nodes = [helper.make_node("STFT", ["x", "step", "", "length"], ["y"], "n")]
    with pytest.raises(PowerlabError, match=f"STFT node 'n' {sentence}"):
        load_bytes(onnx_bytes(nodes, {"x": (1, 100, 1)}, constants=constants))
