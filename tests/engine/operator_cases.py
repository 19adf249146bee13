"""One node an operator and form: what ONNX Runtime and the engine must agree on."""

from __future__ import annotations

import numpy as np

IMAGE = (2, 4, 9, 7)
RANDOM = np.random.default_rng(5)


def floats(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32)


def positive(*shape):
    return RANDOM.uniform(0.5, 2.0, shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


NORM = {"s": positive(4), "b": floats(4), "m": floats(4), "v": positive(4)}


def cell_constants(gates, directions=1, inputs=5, hidden=6):
    """Return weights and biases of a recurrent cell of modest size, as w, r and b."""
    return {
        "w": floats(directions, gates * hidden, inputs) / 3,
        "r": floats(directions, gates * hidden, hidden) / 3,
        "b": floats(directions, 2 * gates * hidden) / 3,
    }


def lstm_constants(directions=1, inputs=5, hidden=6):
    return cell_constants(4, directions, inputs, hidden)


FACTORS = np.array((1, 1, 2, 3), np.float32)
ASYMMETRIC = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}

# (operator, inputs after x, attributes, constants, opset, shape of x, operators after the passes)
CASES = {
    "conv": ("Conv", ["w"], {}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, ["FusedConv"]),
    "conv bias stride": (
        "Conv",
        ["w", "b"],
        {"strides": [2, 1]},
        {"w": floats(3, 4, 3, 2), "b": floats(3)},
        7,
        IMAGE,
        None,
    ),
    "conv depthwise": ("Conv", ["w"], {"group": 4, "pads": [1, 0, 2, 1]}, {"w": floats(8, 1, 3, 3)}, 11, IMAGE, None),
    "conv same": (
        "Conv",
        ["w"],
        {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
        {"w": floats(2, 4, 3, 2)},
        11,
        IMAGE,
        None,
    ),
    "conv dilated": ("Conv", ["w"], {"dilations": [2, 3]}, {"w": floats(2, 4, 3, 2)}, 11, IMAGE, None),
    "conv valid": ("Conv", ["w"], {"auto_pad": "VALID"}, {"w": floats(2, 4, 3, 3)}, 11, IMAGE, None),
    "batch norm": ("BatchNormalization", list("sbmv"), {"epsilon": 1e-2}, NORM, 9, IMAGE, ["ScaleShift"]),
    "batch norm 15": ("BatchNormalization", list("sbmv"), {}, NORM, 15, IMAGE, ["ScaleShift"]),
    "relu": ("Relu", [], {}, {}, 14, IMAGE, ["Clamp"]),
    "elu": ("Elu", [], {"alpha": 0.5}, {}, 7, IMAGE, ["Elu"]),
    "erf": ("Erf", [], {}, {}, 13, IMAGE, ["Erf"]),
    "exp": ("Exp", [], {}, {}, 13, IMAGE, ["Exp"]),
    "gelu": ("Gelu", [], {}, {}, 20, IMAGE, ["Gelu"]),
    "hard sigmoid": ("HardSigmoid", [], {}, {}, 7, IMAGE, ["HardSigmoid"]),
    "hard sigmoid numbers": ("HardSigmoid", [], {"alpha": 0.5, "beta": 0.25}, {}, 7, IMAGE, ["HardSigmoid"]),
    "hard swish": ("HardSwish", [], {}, {}, 14, IMAGE, ["HardSwish"]),
    "sigmoid": ("Sigmoid", [], {}, {}, 13, IMAGE, ["Sigmoid"]),
    "sigmoid flat": ("Sigmoid", [], {}, {}, 13, (3, 5), ["Sigmoid"]),
    "tanh": ("Tanh", [], {}, {}, 13, IMAGE, ["Tanh"]),
    "mul itself": ("Mul", ["x"], {}, {}, 14, IMAGE, ["Multiply"]),
    "mul itself flat": ("Mul", ["x"], {}, {}, 14, (3, 5), ["Multiply"]),
    "leaky relu": ("LeakyRelu", [], {"alpha": 0.1}, {}, 16, IMAGE, ["Clamp"]),
    "leaky relu plain": ("LeakyRelu", [], {}, {}, 7, IMAGE, ["Clamp"]),
    "prelu of one slope": ("PRelu", ["s"], {}, {"s": np.array([[-0.5]], np.float32)}, 16, IMAGE, ["Clamp"]),
    "upsample 7": ("Upsample", [], {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}, {}, 7, IMAGE, ["Resize"]),
    "upsample 9": ("Upsample", ["f"], {"mode": "nearest"}, {"f": FACTORS}, 9, IMAGE, ["Resize"]),
    "resize 10": ("Resize", ["f"], {"mode": "nearest"}, {"f": FACTORS}, 10, IMAGE, ["Resize"]),
    "resize asymmetric": ("Resize", ["", "f"], ASYMMETRIC, {"f": FACTORS}, 13, IMAGE, ["Resize"]),
    "resize half pixel": ("Resize", ["", "f"], {"mode": "nearest"}, {"f": FACTORS}, 13, IMAGE, ["Resize"]),
    "resize sizes": ("Resize", ["", "", "s"], {"mode": "nearest"}, {"s": ints(2, 4, 18, 28)}, 13, IMAGE, ["Resize"]),
    "clip attributes": ("Clip", [], {"min": -0.5, "max": 0.5}, {}, 7, IMAGE, ["Clamp"]),
    "clip attributes open": ("Clip", [], {"max": 0.25}, {}, 7, IMAGE, ["Clamp"]),
    "clip inputs": ("Clip", ["lo", "hi"], {}, {"lo": np.float32(0), "hi": np.float32(6)}, 13, IMAGE, ["Clamp"]),
    "clip input high": ("Clip", ["", "hi"], {}, {"hi": np.float32(0.1)}, 13, IMAGE, ["Clamp"]),
    "max pool": (
        "MaxPool",
        [],
        {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]},
        {},
        12,
        IMAGE,
        ["MaxPool"],
    ),
    "max pool ceil": (
        "MaxPool",
        [],
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {},
        12,
        (1, 2, 8, 10),
        None,
    ),
    "max pool same": (
        "MaxPool",
        [],
        {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {},
        12,
        IMAGE,
        None,
    ),
    "average pool": ("AveragePool", [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, {}, 11, IMAGE, ["AveragePool"]),
    "average pool counts": (
        "AveragePool",
        [],
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
        {},
        11,
        IMAGE,
        None,
    ),
    "average pool ceil": (
        "AveragePool",
        [],
        {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [0, 1, 0, 1]},
        {},
        11,
        IMAGE,
        None,
    ),
    "average pool whole": ("AveragePool", [], {"kernel_shape": [9, 7]}, {}, 11, IMAGE, ["GlobalAveragePool"]),
    "global pool": ("GlobalAveragePool", [], {}, {}, 11, IMAGE, ["GlobalAveragePool"]),
    "reduce mean": ("ReduceMean", [], {"axes": [2, 3], "keepdims": 1}, {}, 13, IMAGE, ["GlobalAveragePool"]),
    "reduce mean flat": (
        "ReduceMean",
        [],
        {"axes": [-1, 2], "keepdims": 0},
        {},
        13,
        IMAGE,
        ["GlobalAveragePool", "Reshape"],
    ),
    "reduce mean 18": ("ReduceMean", ["a"], {}, {"a": ints(2, 3)}, 18, IMAGE, ["GlobalAveragePool"]),
    "add itself": ("Add", ["x"], {}, {}, 14, IMAGE, ["Add"]),
    "add channel": ("Add", ["c"], {}, {"c": floats(4, 1, 1)}, 14, IMAGE, ["ScaleShift"]),
    "sub scalar": ("Sub", ["c"], {}, {"c": np.float32(3)}, 14, IMAGE, ["ScaleShift"]),
    "mul channel": ("Mul", ["c"], {}, {"c": floats(1, 4, 1, 1)}, 14, IMAGE, ["ScaleShift"]),
    "div channel": ("Div", ["c"], {}, {"c": positive(4, 1, 1)}, 14, IMAGE, ["ScaleShift"]),
    "sum": ("Sum", ["x", "x"], {}, {}, 13, IMAGE, ["Add", "Add"]),
    "sum of one": ("Sum", [], {}, {}, 13, IMAGE, ["Reshape"]),
    "gemm": ("Gemm", ["w", "b"], {"transB": 1}, {"w": floats(5, 6), "b": floats(5)}, 11, (3, 6), ["FusedGemm"]),
    "gemm factors": (
        "Gemm",
        ["w", "b"],
        {"alpha": 0.5, "beta": 2.0},
        {"w": floats(6, 5), "b": floats(1, 5)},
        11,
        (3, 6),
        None,
    ),
    "gemm scalar": (
        "Gemm",
        ["w", "b"],
        {"alpha": 0.5, "transB": 1},
        {"w": floats(5, 6), "b": floats(1)},
        11,
        (3, 6),
        None,
    ),
    "gemm no bias": ("Gemm", ["w"], {}, {"w": floats(6, 5)}, 11, (3, 6), ["FusedGemm"]),
    "matmul": ("MatMul", ["w"], {}, {"w": floats(6, 5)}, 13, (3, 6), ["FusedGemm"]),
    "matmul batched": ("MatMul", ["w"], {}, {"w": floats(6, 5)}, 13, (2, 3, 6), ["Reshape", "FusedGemm", "Reshape"]),
    "lrn": ("LRN", [], {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 2.0}, {}, 13, (1, 9, 4, 4), ["LRN"]),
    "lstm": ("LSTM", list("wrb"), {"hidden_size": 6}, lstm_constants(), 14, (7, 3, 5), ["FusedLstm"]),
    "lstm one sequence": ("LSTM", list("wrb"), {"hidden_size": 6}, lstm_constants(), 7, (4, 1, 5), ["FusedLstm"]),
    "lstm without bias": ("LSTM", list("wr"), {"hidden_size": 6}, lstm_constants(), 22, (4, 2, 5), ["FusedLstm"]),
    "lstm both ways": (
        "LSTM",
        list("wrb"),
        {"hidden_size": 6, "direction": "bidirectional"},
        lstm_constants(directions=2),
        14,
        (4, 2, 5),
        ["FusedLstm"],
    ),
    "lstm backwards from a state": (
        "LSTM",
        ["w", "r", "b", "", "h", "c"],
        {"hidden_size": 6, "direction": "reverse"},
        {**lstm_constants(), "h": floats(1, 2, 6), "c": floats(1, 2, 6)},
        14,
        (4, 2, 5),
        ["FusedLstm"],
    ),
    "lstm lengths": (
        "LSTM",
        ["w", "r", "", "l"],
        {"hidden_size": 6},
        {**lstm_constants(), "l": np.array((4, 4), np.int32)},
        14,
        (4, 2, 5),
        ["FusedLstm"],
    ),
    "softmax": ("Softmax", [], {}, {}, 13, (2, 3, 5), ["Softmax"]),
    "softmax axis": ("Softmax", [], {"axis": 1}, {}, 13, IMAGE, ["Softmax"]),
    "softmax 11 flattens": ("Softmax", [], {"axis": 1}, {}, 11, IMAGE, ["Reshape", "Softmax", "Reshape"]),
    "softmax 11 thin": ("Softmax", [], {}, {}, 11, (2, 7, 1, 1), ["Softmax"]),
    "softmax 11 default": ("Softmax", [], {}, {}, 11, (2, 3, 4), None),
    "concat": ("Concat", ["x"], {"axis": 1}, {}, 13, IMAGE, ["Concat"]),
    "concat back": ("Concat", ["x"], {"axis": -1}, {}, 13, IMAGE, ["Concat"]),
    "concat constant": ("Concat", ["c"], {"axis": 1}, {"c": floats(2, 3, 9, 7)}, 13, IMAGE, ["Concat"]),
    "concat constant image": ("Concat", ["c"], {"axis": 0}, {"c": floats(1, 4, 9, 7)}, 13, IMAGE, ["Concat"]),
    "concat of one": ("Concat", [], {"axis": 1}, {}, 13, IMAGE, ["Reshape"]),
    "flatten": ("Flatten", [], {}, {}, 13, IMAGE, ["Reshape"]),
    "flatten back": ("Flatten", [], {"axis": -1}, {}, 13, IMAGE, ["Reshape"]),
    "flatten all": ("Flatten", [], {"axis": 0}, {}, 13, IMAGE, ["Reshape"]),
    "reshape": ("Reshape", ["s"], {}, {"s": ints(0, -1)}, 13, IMAGE, ["Reshape"]),
    "reshape one": ("Reshape", ["s"], {}, {"s": ints(-1)}, 13, IMAGE, ["Reshape"]),
    "squeeze 11": ("Squeeze", [], {"axes": [-1]}, {}, 11, (2, 3, 1), ["Reshape"]),
    "squeeze 13": ("Squeeze", ["a"], {}, {"a": ints(0, 2)}, 13, (1, 3, 1), ["Reshape"]),
    "squeeze all": ("Squeeze", [], {}, {}, 13, (1, 3, 1), ["Reshape"]),
    "unsqueeze 11": ("Unsqueeze", [], {"axes": [0, 3]}, {}, 11, (2, 3), ["Reshape"]),
    "unsqueeze 13": ("Unsqueeze", ["a"], {}, {"a": ints(-1, 1)}, 13, (2, 3), ["Reshape"]),
    "transpose view": ("Transpose", [], {"perm": [0, 2, 3, 1]}, {}, 13, (2, 5, 1, 1), ["Reshape"]),
    "transpose rows": ("Transpose", [], {"perm": [1, 0, 2]}, {}, 13, (2, 3, 5), ["Transpose"]),
    "transpose groups": ("Transpose", [], {"perm": [0, 2, 1, 3]}, {}, 13, IMAGE, ["Transpose"]),
    "dropout": ("Dropout", [], {}, {}, 13, IMAGE, ["Reshape"]),
    "dropout 7": ("Dropout", [], {"ratio": 0.3}, {}, 7, IMAGE, ["Reshape"]),
    "identity": ("Identity", [], {}, {}, 13, IMAGE, ["Reshape"]),
}
