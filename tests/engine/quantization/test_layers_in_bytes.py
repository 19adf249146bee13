"""What dense networks, detectors and transformers are made of, in bytes: beside ONNX Runtime, no floats between."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from onnx import helper
from quantized_models import answers, model_bytes, quantized_between, random_floats

from powerlab.engine import Session
from powerlab.engine.codegen.quantized.byte_products import FASTER
from powerlab.engine.codegen.quantized.pack import products_in_16_bits
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.ir.constants import value_of
from powerlab.engine.passes import optimise
from powerlab.engine.quantization.calibrate import calibrate, random_batches
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph, quantized_weights, scale_of
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers, choose_tier

FLOAT32 = onnx.TensorProto.FLOAT
GENERATOR = np.random.default_rng(11)


def weights(*shape):
    return (GENERATOR.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def vector(size, low, high):
    return GENERATOR.uniform(low, high, size).astype(np.float32)


def conv(x, weight, y, **attributes):
    return helper.make_node("Conv", [x, weight], [y], **attributes)


DENSE = (
    [
        conv("x", "w0", "c0", pads=[1] * 4),
        helper.make_node("Concat", ["x", "c0"], ["d0"], axis=1),
        helper.make_node("BatchNormalization", ["d0", "gamma", "beta", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        conv("r", "w1", "c1", pads=[1] * 4),
        helper.make_node("Concat", ["x", "c0", "c1"], ["d1"], axis=1),
        helper.make_node("AveragePool", ["d1"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        conv("p", "w2", "y"),
    ],
    {
        "w0": weights(32, 16, 3, 3),
        "w1": weights(16, 48, 3, 3),
        "w2": weights(10, 64, 1, 1),
        "gamma": vector(48, 0.5, 1.5),
        "beta": vector(48, -0.3, 0.3),
        "mean": vector(48, -0.3, 0.3),
        "variance": vector(48, 0.5, 1.5),
    },
)
NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
DETECTOR = (
    [
        conv("x", "w0", "c0", pads=[1] * 4),
        helper.make_node("LeakyRelu", ["c0"], ["l0"], alpha=0.1),
        conv("l0", "w1", "c1", pads=[1] * 4),
        helper.make_node("LeakyRelu", ["c1"], ["l1"], alpha=0.1),
        helper.make_node("Add", ["x", "l1"], ["s"]),
        conv("s", "w2", "c2", strides=[2, 2]),
        helper.make_node("Resize", ["c2", "", "scales"], ["u"], **NEAREST),
        helper.make_node("Concat", ["u", "s"], ["d"], axis=1),
        conv("d", "w3", "y"),
    ],
    {
        "w0": weights(8, 16, 3, 3),
        "w1": weights(16, 8, 3, 3),
        "w2": weights(32, 16, 1, 1),
        "w3": weights(12, 48, 1, 1),
        "scales": np.array([1, 1, 2, 2], np.float32),
    },
)
ROWS = (
    [
        helper.make_node("MatMul", ["x", "w0"], ["m0"]),
        helper.make_node("Add", ["b0", "m0"], ["a0"]),
        helper.make_node("Div", ["a0", "root"], ["v"]),
        helper.make_node("Erf", ["v"], ["e"]),
        helper.make_node("Add", ["e", "one"], ["o"]),
        helper.make_node("Mul", ["a0", "o"], ["t"]),
        helper.make_node("Mul", ["t", "half"], ["g"]),
        helper.make_node("MatMul", ["g", "w1"], ["m1"]),
        helper.make_node("Add", ["m1", "b1"], ["a1"]),
        helper.make_node("Add", ["x", "a1"], ["y"]),
    ],
    {
        "w0": weights(24, 40),
        "b0": vector(40, -1, 1),
        "w1": weights(40, 24),
        "b1": vector(24, -1, 1),
        "root": np.float32(2**0.5),
        "one": np.float32(1),
        "half": np.float32(0.5),
    },
)
ATTENTION = (
    [
        *(helper.make_node("MatMul", ["x", f"w{side}"], [side]) for side in "qkv"),
        *(helper.make_node("Reshape", [side, "heads"], [f"{side}h"]) for side in "qkv"),
        *(helper.make_node("Transpose", [f"{side}h"], [f"{side}t"], perm=[0, 2, 1, 3]) for side in "qv"),
        helper.make_node("Transpose", ["kh"], ["kt"], perm=[0, 2, 3, 1]),
        helper.make_node("MatMul", ["qt", "kt"], ["s"]),
        helper.make_node("Mul", ["s", "third"], ["m"]),
        helper.make_node("Softmax", ["m"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "vt"], ["o"]),
        helper.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["ot", "rows"], ["or"]),
        helper.make_node("MatMul", ["or", "wo"], ["y"]),
    ],
    {
        **{f"w{side}": weights(24, 24) * np.float32(2) for side in "qkvo"},
        "heads": np.array([0, 0, 2, 12], np.int64),
        "rows": np.array([0, 0, 24], np.int64),
        "third": np.float32(1 / 3),
    },
)
STANDARDISED = (
    [
        helper.make_node("Mul", ["x", "factors"], ["m"]),
        helper.make_node("Add", ["m", "shifts"], ["s"]),
        conv("s", "w0", "c", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["y"]),
    ],
    {"factors": vector((3, 1, 1), 0.5, 1.5), "shifts": vector((3, 1, 1), -0.3, 0.3), "w0": weights(8, 3, 3, 3)},
)
SOUND = (
    [
        conv("x", "w0", "c0", pads=[2, 2], dilations=[2]),
        helper.make_node("Split", ["c0"], ["l", "r"], axis=1),
        helper.make_node("Relu", ["r"], ["a"]),
        conv("a", "w1", "c1", pads=[1, 1], group=6),
        conv("c1", "w2", "y"),
    ],
    {"w0": weights(12, 6, 3), "w1": weights(6, 1, 3), "w2": weights(4, 6, 1)},
)
FOLDED = (
    [
        helper.make_node("Concat", ["x", "x"], ["d"], axis=1),
        helper.make_node("Reshape", ["d", "image"], ["i"]),
        conv("i", "w0", "y", pads=[1] * 4),
    ],
    {"w0": weights(6, 10, 3, 3), "image": np.array([0, 0, 6, 4])},
)
RESIDUALS = (
    [
        conv("x", "w0", "c0", pads=[1] * 4),
        helper.make_node("LeakyRelu", ["c0"], ["l0"], alpha=0.1),
        helper.make_node("Add", ["x", "l0"], ["s0"]),
        conv("s0", "w1", "c1", pads=[1] * 4),
        helper.make_node("Add", ["c1", "s0"], ["s1"]),
        helper.make_node("Relu", ["s1"], ["r1"]),
        conv("r1", "w2", "y"),
    ],
    {"w0": weights(64, 64, 3, 3), "w1": weights(64, 64, 3, 3), "w2": weights(16, 64, 1, 1)},
)
"""Behind an activation as in Darknet, before one as in ResNet; wide enough for an algorithm of Winograd's."""
SHUFFLED = (
    [
        conv("x", "w0", "c", pads=[1] * 4),
        helper.make_node("Concat", ["c", "x"], ["d"], axis=1),
        helper.make_node("Reshape", ["d", "halves"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[0, 2, 1, 3, 4]),
        helper.make_node("Reshape", ["t", "whole"], ["s"]),
        conv("s", "w1", "y"),
    ],
    {
        "w0": weights(8, 16, 3, 3),
        "w1": weights(12, 24, 1, 1),
        "halves": np.array([0, 2, 12, 9, 7]),
        "whole": np.array([0, 24, 9, 7]),
    },
)
PYRAMID = (
    [
        conv("x", "w0", "c0", pads=[9] * 4, dilations=[9, 9]),
        conv("x", "w1", "c1", pads=[5, 8, 5, 8], dilations=[5, 8]),
        helper.make_node("Add", ["c0", "c1"], ["s"]),
        conv("s", "w2", "y"),
    ],
    {"w0": weights(8, 16, 3, 3), "w1": weights(8, 16, 3, 3), "w2": weights(6, 8, 1, 1)},
)
"""Of the first kernel one tap meets the image, of the second three, a column."""
VOICE = (
    [
        conv("x", "w0", "c0", pads=[4, 0], dilations=[2]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        conv("r0", "w1", "c1", auto_pad="SAME_UPPER", group=16),
        helper.make_node("Add", ["r0", "c1"], ["s"]),
        helper.make_node("Clip", ["s", "low", "high"], ["t"]),
        helper.make_node("MaxPool", ["t"], ["m"], kernel_shape=[3], strides=[2], pads=[1, 1]),
        helper.make_node("AveragePool", ["t"], ["a"], kernel_shape=[2], strides=[2], count_include_pad=1),
        helper.make_node("Concat", ["m", "a"], ["d"], axis=1),
        helper.make_node("BatchNormalization", ["d", "gamma", "beta", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r1"]),
        conv("r1", "w2", "c2", strides=[2]),
        helper.make_node("LeakyRelu", ["c2"], ["l"], alpha=0.2),
        helper.make_node("GlobalAveragePool", ["l"], ["g"]),
        conv("g", "w3", "y"),
    ],
    {
        "w0": weights(16, 6, 3),
        "w1": weights(16, 1, 4),
        "w2": weights(20, 32, 3),
        "w3": weights(8, 20, 1),
        "low": np.float32(0.1),
        "high": np.float32(2),
        "gamma": vector(32, 0.5, 1.5),
        "beta": vector(32, -0.3, 0.3),
        "mean": vector(32, -0.3, 0.3),
        "variance": vector(32, 0.5, 1.5),
    },
)
"""All that may lie between convolutions of a row of pixels."""
PADDED = (
    [
        helper.make_node("Pad", ["x", "pads"], ["p0"]),
        conv("p0", "w0", "c0", strides=[2, 2], pads=[1, 0, 0, 1]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Pad", ["r0", "pads"], ["p1"]),
        conv("p1", "w1", "y"),
    ],
    {"w0": weights(16, 16, 3, 3), "w1": weights(8, 16, 3, 3), "pads": np.array([0, 0, 0, 1, 0, 0, 1, 2])},
)
STACKED = (
    [
        conv("x", "w0", "c0"),
        conv("x", "w1", "c1", pads=[1] * 4),
        helper.make_node("Unsqueeze", ["c0", "second"], ["u0"]),
        helper.make_node("Unsqueeze", ["c1", "second"], ["u1"]),
        helper.make_node("Concat", ["u0", "u1"], ["s"], axis=1),
        helper.make_node("ReduceSum", ["s", "second"], ["t"], keepdims=0),
        conv("t", "w2", "y"),
    ],
    {
        "w0": weights(8, 16, 1, 1),
        "w1": weights(8, 16, 3, 3),
        "w2": weights(6, 8, 1, 1),
        "second": np.array([1]),
    },
)
"""Branches as five axes."""
FUNCTIONS = (
    [
        conv("x", "w0", "c0", pads=[1] * 4),
        helper.make_node("HardSwish", ["c0"], ["h"]),
        conv("h", "w1", "c1"),
        helper.make_node("Sigmoid", ["c1"], ["i"]),
        helper.make_node("Mul", ["c1", "i"], ["s"]),
        conv("s", "w2", "c2", pads=[1] * 4),
        helper.make_node("Add", ["c2", "three"], ["a"]),
        helper.make_node("Clip", ["a", "zero", "six"], ["l"]),
        helper.make_node("Mul", ["c2", "l"], ["m"]),
        helper.make_node("Div", ["m", "six"], ["d"]),
        conv("d", "w3", "y"),
    ],
    {
        "w0": weights(20, 16, 3, 3),
        "w1": weights(20, 20, 1, 1),
        "w2": weights(20, 20, 3, 3),
        "w3": weights(6, 20, 1, 1),
        "three": np.float32(3),
        "zero": np.float32(0),
        "six": np.float32(6),
    },
)
"""Three activations, two of them written out."""
EXCITED = (
    [
        conv("x", "w0", "c0"),
        helper.make_node("HardSwish", ["c0"], ["h"]),
        helper.make_node("ReduceMean", ["h"], ["a"], axes=[2, 3]),
        conv("a", "w1", "c1"),
        helper.make_node("HardSigmoid", ["c1"], ["g"]),
        helper.make_node("Mul", ["h", "g"], ["m"]),
        conv("m", "w2", "y"),
    ],
    {"w0": weights(20, 16, 1, 1), "w1": weights(20, 20, 1, 1), "w2": weights(6, 20, 1, 1)},
)
TOGETHER = (
    [
        conv("x", "w0", "c0", pads=[2] * 4, group=20),
        conv("c0", "w1", "c1", pads=[3] * 4, strides=[2, 2], group=20),
        conv("c1", "w2", "c2", pads=[1, 3, 1, 3], strides=[1, 2], group=20),
        conv("c2", "w3", "c3", pads=[7] * 4, group=20),
        conv("c3", "w4", "y"),
    ],
    {
        "w0": weights(20, 1, 5, 5),
        "w1": weights(20, 1, 7, 7),
        "w2": weights(20, 1, 3, 7),
        "w3": weights(20, 1, 15, 15),
        "w4": weights(6, 20, 1, 1),
    },
)
"""Depthwise kernels of which dot products add up a few taps at once."""
ONE_BY_ONE = (
    [
        conv("x", "w0", "c0", pads=[1] * 4, group=20),
        conv("c0", "w1", "c1", pads=[8, 0, 8, 0], group=20),
        conv("c1", "w2", "c2", pads=[4] * 4, dilations=[2, 2], group=20),
        conv("c2", "w3", "y"),
    ],
    {
        "w0": weights(20, 1, 3, 3),
        "w1": weights(20, 1, 17, 1),
        "w2": weights(20, 1, 5, 5),
        "w3": weights(6, 20, 1, 1),
    },
)
"""Depthwise kernels whose taps are multiplied one by one, or by rows of 3."""
CUT_AND_JOINED = (
    [
        conv("x", "w4", "c4"),
        helper.make_node("Split", ["c4", "sizes"], ["s0", "s1", "s2"], axis=1),
        conv("s0", "w0", "c0"),
        conv("s1", "w1", "c1", pads=[1] * 4, group=13),
        helper.make_node("Relu", ["c1"], ["r1"]),
        conv("s2", "w2", "c2"),
        helper.make_node("Concat", ["c0", "r1", "c2"], ["j"], axis=1),
        conv("j", "w3", "y", pads=[1] * 4),
    ],
    {
        "sizes": np.array([21, 13, 6], np.int64),
        "w0": weights(19, 21, 1, 1),
        "w1": weights(13, 1, 3, 3),
        "w2": weights(5, 6, 1, 1),
        "w3": weights(6, 37, 3, 3),
        "w4": weights(40, 16, 1, 1),
    },
)
"""Channels that begin anywhere in a block."""
VOLUMES = (
    [
        conv("x", "w0", "c0", pads=[1, 1, 1] * 2),
        helper.make_node("Relu", ["c0"], ["r0"]),
        conv("r0", "w1", "c1", pads=[1, 1, 1] * 2),
        helper.make_node("Add", ["c1", "r0"], ["s"]),
        helper.make_node("Relu", ["s"], ["r1"]),
        conv("r1", "w2", "y", pads=[1, 1, 1] * 2),
    ],
    {"w0": weights(20, 3, 3, 3, 3), "w1": weights(20, 20, 3, 3, 3), "w2": weights(7, 20, 3, 3, 3)},
)
"""Convolutions, a residual, and planes at the ends, beside which lies nothing."""
LONG = (
    [
        conv("x", "w0", "c0", pads=[2, 0, 1] * 2, strides=[2, 2, 1]),
        helper.make_node("MaxPool", ["c0"], ["p"], kernel_shape=[2, 1, 2]),
        conv("p", "w1", "c1"),
        helper.make_node("Sigmoid", ["c1"], ["g"]),
        helper.make_node("Mul", ["c1", "g"], ["f"]),
        conv("f", "w2", "y", pads=[1, 0, 0] * 2),
    ],
    {"w0": weights(36, 20, 5, 1, 3), "w1": weights(24, 36, 1, 1, 1), "w2": weights(6, 24, 3, 1, 1)},
)
"""Kernels that are deeper than a volume, and wider strides."""
DEEP = (
    [
        conv("x", "w0", "c0", dilations=[2, 1, 1]),
        conv("c0", "w1", "c1", group=4),
        conv("c1", "w2", "y", pads=[0, 1, 1] * 2),
    ],
    {"w0": weights(16, 20, 2, 1, 1), "w1": weights(16, 4, 1, 1, 1), "w2": weights(6, 16, 1, 3, 3)},
)
"""Planes that are no neighbours, and groups, which stay floats."""
LAYER_SCALE = (
    [
        conv("x", "w0", "c0"),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Mul", ["g0", "r0"], ["m0"]),
        helper.make_node("Add", ["m0", "x"], ["s"]),
        helper.make_node("Mul", ["s", "g1"], ["m1"]),
        conv("m1", "w1", "c1", pads=[1] * 4),
        helper.make_node("Mul", ["c1", "g0"], ["m2"]),
        helper.make_node("Add", ["m2", "s"], ["y"]),
    ],
    {
        "w0": weights(20, 20, 1, 1),
        "w1": weights(20, 20, 3, 3),
        "g0": vector((1, 20, 1, 1), -1, 1),
        "g1": vector((20, 1, 1), 0.5, 2),
    },
)
"""Factors a channel: behind an activation and a sum, and behind a convolution, whose weights take them."""
CAUSAL = (
    [
        helper.make_node("Pad", ["x", "before0", "none"], ["p0"]),
        conv("p0", "w0", "c0", dilations=[2]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Pad", ["r0", "before1"], ["p1"]),
        conv("p1", "w1", "c1"),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Pad", ["r1", "around"], ["p2"], mode="reflect"),
        conv("p2", "w2", "y"),
    ],
    {
        "w0": weights(20, 6, 3),
        "w1": weights(24, 20, 4),
        "w2": weights(6, 24, 5),
        "before0": np.array([0, 0, 4, 0, 0, 0]),
        "before1": np.array([0, 0, 3, 0, 0, 1]),
        "around": np.array([0, 0, 2, 0, 0, 2]),
        "none": np.float32(0),
    },
)
"""Sound with zeros before it, as convolutions that know no future have, and reflected at both ends."""
SHAPES_CHANGE = {
    "standardised": (STANDARDISED, (2, 3, 9, 7)),
    "sound": (SOUND, (2, 6, 30)),
    "voice": (VOICE, (2, 6, 30)),
    "folded": (FOLDED, (2, 5, 24)),
    "shuffled": (SHUFFLED, (2, 16, 9, 7)),
    "pyramid": (PYRAMID, (2, 16, 9, 7)),
    "padded": (PADDED, (2, 16, 9, 7)),
    "stacked": (STACKED, (2, 16, 9, 7)),
    "functions": (FUNCTIONS, (2, 16, 9, 7)),
    "excited": (EXCITED, (2, 16, 9, 7)),
    "together": (TOGETHER, (2, 20, 13, 40)),
    "cut and joined": (CUT_AND_JOINED, (2, 16, 9, 7)),
    "volumes": (VOLUMES, (2, 3, 7, 9, 8)),
    "a plane": (VOLUMES, (1, 3, 1, 9, 8)),
    "long": (LONG, (2, 20, 6, 9, 8)),
    "deep": (DEEP, (2, 20, 5, 6, 7)),
    "one by one": (ONE_BY_ONE, (2, 20, 13, 21)),
    "layer scale": (LAYER_SCALE, (2, 20, 9, 7)),
    "causal": (CAUSAL, (2, 6, 30)),
}
CASES = {"dense": (DENSE, (2, 16, 12, 12)), "detector": (DETECTOR, (2, 16, 10, 14)), "rows": (ROWS, (2, 7, 24))}
WITH_ATTENTION = {**CASES, "attention": (ATTENTION, (2, 19, 24))}


def prepared(case, folder):
    (nodes, constants), shape = {**WITH_ATTENTION, **SHAPES_CHANGE, "residuals": (RESIDUALS, (2, 64, 28, 28))}[case]
    path = folder / "floats.onnx"
    path.write_bytes(model_bytes(nodes, {"x": (FLOAT32, shape)}, {"y": (FLOAT32, None)}, constants, 17))
    return prepared_for_quantization(load_graph(path))


def written(case, folder, **options):
    """Return a network in integers as a file, its inputs, and the scale of its output."""
    graph = prepared(case, folder)
    calibration = calibrate(graph, random_batches(graph, 32))
    path = folder / "integers.onnx"
    write_onnx(quantize_graph(graph, calibration, Options(**options)).graph, path)
    scale = scale_of(*calibration.ranges["y"])[0] if "y" in calibration.ranges else 0.0
    return path, random_batches(graph, 1, seed=5)[0], float(scale)


@pytest.mark.parametrize("case", CASES)
def test_onnx_runtime_gives_the_same_answers(case, tmp_path):
    """But where a sum lies near the middle between two integers, and where what is only added is not rounded before."""
    path, inputs, scale = written(case, tmp_path)
    found = Session(path, threads=1).run(inputs)["y"]
    expected = run_ort(str(path), inputs)["y"]
    scale = scale or np.abs(expected).max() / 100
    assert np.abs(found - expected).max() <= 2.01 * scale
    assert np.mean(np.abs(found - expected) > 0.01 * scale) <= (0.3 if case == "detector" else 0.05)


@pytest.mark.parametrize("case", CASES)
def test_integers_keep_most_of_the_signal(case, tmp_path):
    path, inputs, _ = written(case, tmp_path)
    exact = Session(tmp_path / "floats.onnx", threads=1).run(inputs)["y"].astype(np.float64)
    noise = np.square(exact - Session(path, threads=1).run(inputs)["y"]).sum()
    assert 10 * np.log10(np.square(exact).sum() / noise) > 28


@pytest.mark.parametrize("case", SHAPES_CHANGE)
def test_axes_that_are_no_images_and_few_channels_are_read_right(case, tmp_path):
    """Channels standardised, shuffled or stacked, sounds, a part that nobody reads, taps that meet zero points only."""
    path, inputs, scale = written(case, tmp_path)
    expected = run_ort(str(path), inputs, as_written=True)["y"]
    for tier in available_tiers():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(TIER_VARIABLE, tier.name)
            found = Session(path, threads=2).run(inputs)["y"]
        assert np.abs(found - expected).max() <= 2.01 * scale, tier.name
    exact = Session(tmp_path / "floats.onnx", threads=1).run(inputs)["y"].astype(np.float64)
    noise = np.square(exact - expected).sum()
    assert 10 * np.log10(np.square(exact).sum() / noise) > 28


def test_what_is_only_rounded_passes_kernels_of_bytes(tmp_path):
    kernels = [kernel for kernel, _ in Session(written("shuffled", tmp_path)[0], threads=1).steps()]
    assert any(kernel.startswith("quantize_") for kernel in kernels)
    assert not any("quantize_strided" in kernel for kernel in kernels)


def test_zeros_before_a_row_become_padding_and_reflections_bytes(tmp_path):
    kernels = [kernel.partition("_")[0] for kernel, _ in Session(written("causal", tmp_path)[0], threads=1).steps()]
    assert kernels[-7:] == ["quantize", "conv", "conv", "pad", "conv", "dequantize", "reorder"], kernels


def test_zeros_around_an_image_become_the_padding_of_what_convolves_it(tmp_path):
    kernels = [kernel for kernel, _ in Session(written("padded", tmp_path)[0], threads=1).steps()]
    assert [kernel.partition("_")[0] for kernel in kernels[:3]] == ["quantize", "conv", "conv"], kernels


def test_factors_of_channels_multiply_bytes_or_are_in_the_weights_before_them(tmp_path):
    kernels = [kernel for kernel, _ in Session(written("layer scale", tmp_path)[0], threads=1).steps()]
    assert [kernel.rsplit("_u8", 1)[0].partition("_")[0] for kernel in kernels] == [
        *("quantize", "conv", "scale", "add", "scale", "conv", "dequantize", "reorder"),
    ]


def test_a_function_of_one_tensor_is_a_table_however_it_is_written(tmp_path):
    kernels = [kernel.partition("_")[0] for kernel, _ in Session(written("functions", tmp_path)[0], threads=1).steps()]
    assert kernels[1:-2] == ["conv", "lookup", "conv", "lookup", "conv", "lookup", "conv"]


def test_a_function_that_others_read_too_stays_one(tmp_path):
    """As in squeeze-and-excite, whose activation is averaged and scaled, and rounded only then: in two steps."""
    path = written("excited", tmp_path)[0]
    stems = [kernel.partition("_")[0] for kernel, _ in Session(path, threads=1).steps()]
    assert not {"lookup", "multiply", "hard", "silu"} & set(stems)
    nodes = optimise(load_graph(path)).nodes
    assert [node.attributes["function"] for node in nodes if "function" in node.attributes] == [
        "HardSwish",
        "HardSigmoid",
    ]
    assert [len(node.inputs) for node in nodes if node.op_type == "Quantize"].count(2) == 1


@pytest.mark.parametrize(("case", "together"), [("together", 4), ("one by one", 0)])
def test_taps_of_large_depthwise_kernels_are_multiplied_together(case, together, tmp_path, monkeypatch):
    path = written(case, tmp_path)[0]
    for tier in available_tiers():
        monkeypatch.setenv(TIER_VARIABLE, tier.name)
        kernels = [kernel for kernel, _ in Session(path, threads=1).steps()]
        expected = together if tier.depthwise_neighbours else 0
        assert sum("neighbours" in kernel for kernel in kernels) == expected, kernels


def test_channels_are_cut_and_joined_as_bytes(tmp_path):
    kernels = [kernel for kernel, _ in Session(written("cut and joined", tmp_path)[0], threads=1).steps()]
    assert sum(kernel.startswith("move_channels_u8") for kernel in kernels) == 6, kernels
    assert not any(kernel.startswith(("move_channels_f32", "dequantize")) for kernel in kernels[:-2]), kernels


@pytest.mark.parametrize(("case", "steps"), [("volumes", [3, 3, 3]), ("a plane", [1, 1, 1]), ("long", [3, 1, 2])])
def test_volumes_are_bytes_between_their_convolutions(case, steps, tmp_path):
    """A step for each stretch of planes that as many taps of a kernel meet, of each volume."""
    path, inputs, _ = written(case, tmp_path)
    session = Session(path, threads=1)
    kernels = [kernel for kernel, _ in session.steps()]
    assert sum("conv_direct_u8" in kernel for kernel in kernels) == len(inputs["x"]) * sum(steps), kernels
    assert not any(kernel.startswith(("add", "conv_planes")) for kernel in kernels), kernels


def test_the_work_of_a_volumes_planes_is_that_of_the_taps_that_meet_some(tmp_path):
    session = Session(written("volumes", tmp_path)[0], threads=1)
    first = [work for work in session.work if work.label == "c0"]
    pixels, outputs, weights = 9 * 8, 20, 3 * 9  # of a plane; of a tap in depth
    planes_and_taps = [(1, 2), (1, 2), (5, 3), (5, 3), (1, 2), (1, 2)]  # both volumes' first planes come first
    assert [work.shape[2] for work in first] == [planes for planes, _ in planes_and_taps]
    assert [work.flops for work in first] == [2 * pixels * outputs * weights * n * taps for n, taps in planes_and_taps]


def test_what_was_only_moved_is_not_rounded_again(tmp_path):
    """Of the sum's operands, each is rounded when it is made, and the sum is rounded."""
    kernels = [kernel for kernel, _ in Session(written("stacked", tmp_path)[0], threads=1).steps()]
    assert sum(kernel.startswith("quantize") for kernel in kernels) == 2, kernels


def test_taps_that_meet_only_zero_points_are_cut(tmp_path):
    session = Session(written("pyramid", tmp_path)[0], threads=1)
    pixels, multiplications = 2 * 9 * 7, (16 * 8 * 1, 16 * 8 * 3, 8 * 6)
    assert sum(work.flops for work in session.work) < 2.2 * pixels * sum(multiplications)


@pytest.mark.parametrize("case", ["dense", "detector"])
def test_images_stay_bytes_from_end_to_end(case, tmp_path):
    """But for what floats compute faster where bytes are multiplied as pairs of 16 bits, on x86 without VNNI."""
    kernels = [kernel for kernel, _ in Session(written(case, tmp_path)[0], threads=1).steps()]
    in_floats = ["conv_winograd"] if choose_tier().widens_bytes else []
    assert all("_u8" in kernel or any(kernel.startswith(one) for one in in_floats) for kernel in kernels[:-1])
    assert "to_planes" in kernels[-1]
    assert not any(kernel.startswith("add_u8") for kernel in kernels), "what is joined lies in the whole already"


def test_sounds_stay_bytes_from_end_to_end(tmp_path):
    copied, *kernels, last = (kernel for kernel, _ in Session(written("voice", tmp_path)[0], threads=1).steps())
    assert copied.startswith("copy")
    assert all("_u8" in kernel for kernel in kernels)
    assert "to_planes" in last


def test_residuals_are_added_where_floats_compute_faster(tmp_path, monkeypatch):
    """Unlike ONNX Runtime, the engine does not round what is only added: a third of the bytes are other ones."""
    path, inputs, scale = written("residuals", tmp_path)
    expected = run_ort(str(path), inputs)["y"]
    for tier in available_tiers():
        monkeypatch.setenv(TIER_VARIABLE, tier.name)
        session = Session(path, threads=2)
        found, kernels = session.run(inputs)["y"], [kernel for kernel, _ in session.steps()]
        if tier.widens_bytes and tier.vector_width == 8:
            assert sum(kernel.startswith("conv_winograd") for kernel in kernels) == 2, kernels
        assert not any(kernel.startswith("add") for kernel in kernels), kernels
        assert np.abs(found - expected).max() <= 2.01 * scale, tier.name
        assert np.mean(np.abs(found - expected) > 0.01 * scale) <= 0.35, tier.name


def test_products_of_sequences_multiply_bytes(tmp_path):
    kernels = [kernel.rsplit("_", 2)[0] for kernel, _ in Session(written("rows", tmp_path)[0], threads=1).steps()]
    products = [kernel for kernel in kernels if kernel.startswith("conv_direct")]
    assert products == ["conv_direct_u8_f32"] * 2
    assert "gelu" not in "".join(kernels), "it ends the product before it"


def test_attention_multiplies_bytes(tmp_path, monkeypatch):
    """Where an instruction set has dot products of bytes; elsewhere floats that were rounded give the same answer."""
    path, inputs, _ = written("attention", tmp_path, attention=True)
    exact = Session(tmp_path / "floats.onnx", threads=1).run(inputs)["y"]
    expected = run_ort(str(path), inputs)["y"]
    signal = np.square(exact, dtype=np.float64).sum()
    for tier in available_tiers():
        monkeypatch.setenv(TIER_VARIABLE, tier.name)
        for threads in (1, 3):
            session = Session(path, threads=threads)
            found = session.run(inputs)["y"]
            products = [kernel for kernel, _ in session.steps() if kernel.startswith("matmul")]
            assert [kernel.startswith("matmul_u8") for kernel in products] == [tier.bytes in FASTER] * 2, products
            assert np.square(exact - found, dtype=np.float64).sum() < 10**-2.8 * signal
            assert np.square(expected - found, dtype=np.float64).sum() < 10**-4.5 * signal, tier
    plain = written("attention", tmp_path)[0]
    assert not any("matmul_u8" in kernel for kernel, _ in Session(plain, threads=1).steps())


@pytest.mark.parametrize(("first", "scale"), [(16, 0.02), (16, 0.05), (7, 0.05)])
def test_images_of_other_scales_are_joined(first, scale, tmp_path):
    """Also where the second does not begin a block."""
    made = ["y_s", "y_z", "x0_q", "x0_s", "x0_z", "x1_q", "x1_s", "x1_z"]
    constants = {"y_s": np.float32(scale), "y_z": np.uint8(118)}
    shapes = [(2, first, 5, 6), (2, 9, 5, 6)]
    data = quantized_between(
        "QLinearConcat", shapes, made, constants=constants, domain="com.microsoft", attributes={"axis": 1}
    )
    found, expected = answers(data, tmp_path, random_floats(shapes))
    np.testing.assert_allclose(found["y"], expected["y"], atol=1e-6)


@pytest.mark.parametrize("products", [2, 4])
@pytest.mark.parametrize(("shape", "axis"), [((12, 7, 3, 3), 0), ((9, 14), 1), ((9, 14), 0)])
def test_products_of_narrow_weights_fit_16_bits(shape, axis, products):
    values = GENERATOR.standard_normal(shape).astype(np.float32)
    whole, scale = quantized_weights(values, axis, narrow=products)
    rows = np.moveaxis(whole, axis, 0)
    assert products_in_16_bits(rows.reshape(*rows.shape, *(1,) * (4 - rows.ndim))) == products
    assert np.abs(whole).max() > 128 / products, "where large weights are no neighbours, less goes"
    sizes = [1] * values.ndim
    sizes[axis] = -1
    assert np.abs(whole * scale.reshape(sizes) - values).max() <= scale.max() / 2 + 1e-6


@pytest.mark.parametrize(
    ("channels", "fitting"),
    [((0, 1), 1), ((0, 2), 4), ((0, 4), 2), ((1, 5), 2), ((0, 6), 4), ((4, 8), 4), ((0, 16), 4)],
)
def test_which_weights_are_multiplied_into_the_same_16_bits(channels, fitting):
    """Those of neighbours; of two words, those in the same places, too."""
    weights = np.zeros((1, 17, 1, 1), np.int8)
    weights[0, list(channels)] = 65
    assert products_in_16_bits(weights) == fitting
    weights[0, channels[0]] = -65
    assert products_in_16_bits(weights) == 4


@pytest.mark.parametrize("products", [2, 4])
@pytest.mark.parametrize("case", CASES)
def test_narrow_weights_are_multiplied_as_they_are(case, products, tmp_path, monkeypatch):
    """On every tier of this processor, with its kernels for them or without, to the same bytes."""
    path, inputs, _ = written(case, tmp_path, narrow_weights=products)
    constants = load_graph(path).kept_constants
    assert any(one.dtype == np.int8 and len(one.shape) > 1 and np.any(value_of(one)) for one in constants.values())
    found = {}
    for tier in available_tiers():
        monkeypatch.setenv(TIER_VARIABLE, tier.name)
        session = Session(path, threads=1)
        found[tier.name] = session.run(inputs)["y"]
        if tier.bytes == "avx2bytes":
            fitting = 2 if case == "rows" else products
            assert any(f"_narrow{fitting}_2x5_avx2bytes" in kernel for kernel, _ in session.steps())
    first = next(iter(found.values()))
    for tier, answer in found.items():
        np.testing.assert_allclose(answer, first, rtol=1e-5, atol=1e-5, err_msg=tier)
