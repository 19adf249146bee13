"""Quantized operators as exporters and ONNX Runtime's tools write them: the same integers as ONNX Runtime's."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from quantized_models import MICROSOFT, answers, model_bytes, quantized_between, random_floats

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session

X0, X1, Y = ["x0_q", "x0_s", "x0_z"], ["x1_q", "x1_s", "x1_z"], ["y_s", "y_z"]
IMAGE = (1, 8, 7, 9)

GENERATOR = np.random.default_rng(7)
LARGEST = 64
"""Of weights: on x86 without VNNI, ONNX Runtime adds two products in 16 bits, which saturate with larger ones."""

PER_CHANNEL = {
    "w": GENERATOR.integers(-LARGEST, LARGEST, (6, 8, 3, 3)).astype(np.int8),
    "w_s": GENERATOR.uniform(0.001, 0.003, 6).astype(np.float32),
    "w_z": np.zeros(6, np.int8),
    "b": GENERATOR.integers(-3000, 3000, 6).astype(np.int32),
}
UNSIGNED = {
    "w": GENERATOR.integers(0, 256, (6, 8, 1, 1)).astype(np.uint8),
    "w_s": np.float32(0.004),
    "w_z": np.uint8(128),
}
DEPTHWISE = {
    "w": GENERATOR.integers(0, 256, (8, 1, 3, 3)).astype(np.uint8),
    "w_s": np.float32(0.004),
    "w_z": np.uint8(117),
}
MATRIX = {
    "w": GENERATOR.integers(-LARGEST, LARGEST, (12, 5)).astype(np.int8),
    "w_s": GENERATOR.uniform(0.001, 0.003, 5).astype(np.float32),
    "w_z": np.zeros(5, np.int8),
    "b": GENERATOR.integers(-3000, 3000, 5).astype(np.int32),
}
ONE_SCALE = {**MATRIX, "w_s": np.float32(0.002), "w_z": np.int8(0)}
WEIGHT = ["w", "w_s", "w_z"]

CASES = {
    "convolution, a scale a channel": (
        "QLinearConv",
        "",
        [IMAGE],
        [*X0, *WEIGHT, *Y, "b"],
        PER_CHANNEL,
        {"pads": [1, 1, 1, 1], "strides": [2, 1]},
    ),
    "convolution, unsigned weights": ("QLinearConv", "", [IMAGE], [*X0, *WEIGHT, *Y], UNSIGNED, {}),
    "depthwise convolution": ("QLinearConv", "", [IMAGE], [*X0, *WEIGHT, *Y], DEPTHWISE, {"group": 8}),
    "matrix product": ("QLinearMatMul", "", [(3, 4, 12)], [*X0, *WEIGHT, *Y], MATRIX, {}),
    "matrix product of computed tensors": ("QLinearMatMul", "", [(2, 4, 12), (12, 3)], [*X0, *X1, *Y], {}, {}),
    "sum": ("QLinearAdd", MICROSOFT, [IMAGE, IMAGE], [*X0, *X1, *Y], {}, {}),
    "product": ("QLinearMul", MICROSOFT, [IMAGE, (1, 8, 1, 1)], [*X0, *X1, *Y], {}, {}),
    "linear layer": ("QGemm", MICROSOFT, [(4, 12)], [*X0, *WEIGHT, "b", *Y], MATRIX, {"alpha": 1.0}),
    "linear layer, transposed": (
        "QGemm",
        MICROSOFT,
        [(4, 12)],
        [*X0, *WEIGHT, "b", *Y],
        {**ONE_SCALE, "w": np.ascontiguousarray(MATRIX["w"].T)},
        {"alpha": 0.5, "transB": 1},
    ),
    "mean of images": (
        "QLinearGlobalAveragePool",
        MICROSOFT,
        [IMAGE],
        [*X0, *Y],
        {},
        {"channels_last": 0},
    ),
    "mean of windows": (
        "QLinearAveragePool",
        MICROSOFT,
        [IMAGE],
        [*X0, *Y],
        {},
        {"kernel_shape": [3, 3], "strides": [2, 2]},
    ),
    "concatenation": ("QLinearConcat", MICROSOFT, [IMAGE, (1, 3, 7, 9)], [*Y, *X0, *X1], {}, {"axis": 1}),
    "sigmoid": ("QLinearSigmoid", MICROSOFT, [IMAGE], [*X0, *Y], {}, {}),
    "leaky relu": ("QLinearLeakyRelu", MICROSOFT, [IMAGE], [*X0, *Y], {}, {"alpha": 0.1}),
    "softmax": ("QLinearSoftmax", MICROSOFT, [(3, 9)], [*X0, *Y], {}, {"axis": -1, "opset": 13}),
}


@pytest.mark.parametrize("case", CASES)
def test_an_operator_makes_the_integers_of_onnx_runtime(case, tmp_path):
    """Where a float lies between two integers, the last bit decides: by one, for one element in 200 at most."""
    operator, domain, shapes, inputs, constants, attributes = CASES[case]
    data = quantized_between(operator, shapes, inputs, constants=constants, domain=domain, attributes=attributes)
    found, expected = answers(data, tmp_path, random_floats(shapes))
    steps = np.rint((found["y"] - expected["y"]) / 0.05)
    assert np.ptp(expected["y"]) > 0.1, "an answer that says nothing"
    assert np.abs(steps).max() <= 1
    assert np.mean(steps != 0) <= 0.005


def test_sums_of_integers_are_exact(tmp_path):
    a = np.arange(24, dtype=np.uint8).reshape(4, 6)
    constants = {"w": MATRIX["w"][:6], "a_z": np.uint8(7), "w_z": MATRIX["w_z"] + np.int8(3)}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "a_z", "w_z"], ["y"])]
    inputs = {"x": (TensorProto.UINT8, a.shape)}
    data = model_bytes(nodes, inputs, {"y": (TensorProto.INT32, None)}, constants)
    found, expected = answers(data, tmp_path, {"x": a})
    np.testing.assert_array_equal(found["y"], expected["y"])


@pytest.mark.parametrize("operator", ["DynamicQuantizeMatMul", "MatMulInteger", "MatMulIntegerToFloat"])
def test_a_product_quantized_as_it_runs(operator, tmp_path):
    """As ONNX Runtime's dynamic quantization writes it, before and after its own optimizer."""
    constants = {"w": MATRIX["w"], "w_s": np.float32(0.002), "w_z": np.int8(0), "bias": np.ones(5, np.float32)}
    dynamic = helper.make_node("DynamicQuantizeLinear", ["x0"], ["q", "s", "z"])
    match operator:
        case "DynamicQuantizeMatMul":
            nodes = [helper.make_node(operator, ["x0", *WEIGHT, "bias"], ["y"], domain=MICROSOFT)]
        case "MatMulInteger":
            nodes = [
                dynamic,
                helper.make_node(operator, ["q", "w", "z", "w_z"], ["i"]),
                helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
                helper.make_node("Mul", ["s", "w_s"], ["step"]),
                helper.make_node("Mul", ["f", "step"], ["p"]),
                helper.make_node("Add", ["p", "bias"], ["y"]),
            ]
        case _:
            inputs = ["q", "w", "s", "w_s", "z", "w_z", "bias"]
            nodes = [dynamic, helper.make_node(operator, inputs, ["y"], domain=MICROSOFT)]
    float32 = TensorProto.FLOAT
    data = model_bytes(nodes, {"x0": (float32, (4, 12))}, {"y": (float32, None)}, constants)
    found, expected = answers(data, tmp_path, random_floats([(4, 12)]))
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-5)


def test_weights_of_four_bits_are_read(tmp_path):
    """As exporters write weight-only models: blocks of an axis have a scale each."""
    codes = GENERATOR.integers(-8, 8, (16, 6))
    weight = helper.make_tensor("w", TensorProto.INT4, (16, 6), codes.reshape(-1))
    scales = GENERATOR.uniform(0.01, 0.1, (2, 6)).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["f"], axis=0, block_size=8),
        helper.make_node("MatMul", ["x0", "f"], ["y"]),
    ]
    float32 = TensorProto.FLOAT
    model = onnx.ModelProto.FromString(
        model_bytes(nodes, {"x0": (float32, (3, 16))}, {"y": (float32, None)}, {"s": scales})
    )
    model.graph.initializer.append(weight)
    found, expected = answers(model.SerializeToString(), tmp_path, random_floats([(3, 16)]))
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-6)
    floats = codes * np.repeat(scales, 8, axis=0)
    np.testing.assert_allclose(found["y"], random_floats([(3, 16)])["x0"] @ floats, rtol=1e-4, atol=1e-5)


def test_a_network_in_bfloat16_computes_in_float32(tmp_path):
    weight = GENERATOR.standard_normal((12, 5)).astype(np.float32)
    nodes = [
        helper.make_node("Cast", ["x0"], ["h"], to=TensorProto.BFLOAT16),
        helper.make_node("MatMul", ["h", "w"], ["p"]),
        helper.make_node("Cast", ["p"], ["y"], to=TensorProto.FLOAT),
    ]
    float32 = TensorProto.FLOAT
    model = onnx.ModelProto.FromString(model_bytes(nodes, {"x0": (float32, (4, 12))}, {"y": (float32, None)}, {}))
    halved = helper.make_tensor("w", TensorProto.BFLOAT16, (12, 5), weight.reshape(-1))
    model.graph.initializer.append(halved)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    inputs = random_floats([(4, 12)])
    x, w = (bfloat16(value) for value in (inputs["x0"], weight))
    np.testing.assert_allclose(Session(path, threads=1).run(inputs)["y"], x @ w, rtol=1e-5, atol=1e-5)


def bfloat16(values):
    """Round to nearest, even where two are as near: https://arxiv.org/abs/1905.12322."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


@pytest.mark.parametrize("case", CASES)
def test_an_operator_does_without_an_input_or_says_that_it_cannot(case, tmp_path):
    operator, domain, shapes, inputs, constants, attributes = CASES[case]
    path = tmp_path / "model.onnx"
    for count in range(len(inputs)):
        for made in (inputs[:count], [*inputs[:count], "", *inputs[count + 1 :]]):
            data = quantized_between(operator, shapes, made, constants=constants, domain=domain, attributes=attributes)
            path.write_bytes(data)
            with suppress(PowerlabError):  # any other error is one that nobody foresaw
                Session(path, threads=1)


WRONG = {
    "a scale of 0": ({"y_s": np.float32(0)}, "has a scale of 0, which expresses nothing"),
    "a scale that is no number": ({"y_s": np.float32(np.nan)}, "has a scale of nan, which expresses nothing"),
    "zero points of another number": ({"y_z": np.zeros(3, np.uint8)}, "scales of the shape () and zero points of the"),
    "zero points of another type": ({"x0_z": np.int8(3)}, "values of the type uint8 and zero points of the type int8"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrongly_quantized_model_gets_a_sentence(what, tmp_path):
    constants, sentence = WRONG[what]
    nodes = [
        helper.make_node("DequantizeLinear", ["x0", "x0_s", "x0_z"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "y_s", "y_z"], ["y"]),
    ]
    usual = {"x0_s": np.float32(0.1), "x0_z": np.uint8(3), "y_s": np.float32(0.2), "y_z": np.uint8(9)}
    uint8 = TensorProto.UINT8
    data = model_bytes(nodes, {"x0": (uint8, (2, 3))}, {"y": (uint8, None)}, {**usual, **constants})
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(PowerlabError) as raised:
        Session(path, threads=1)
    assert sentence in str(raised.value)
