"""A node the engine cannot run is named, with what is wrong, in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes
from onnx import helper
from operator_cases import FACTORS, IMAGE, NORM, floats, ints

from powerlab.domain.errors import PowerlabError
from powerlab.engine.passes import optimise

# (operator, inputs, attributes, constants, opset, shape of x, what the sentence says)
WRONG = {
    "unknown operator": ("Det", ["x"], {}, {}, 13, IMAGE, "Det node 'n' uses an operator the engine does not have"),
    "resize kind": ("Resize", ["x", "", "f"], {"mode": "best"}, {"f": FACTORS}, 13, IMAGE, "mode 'best'; known are"),
    "resize scales": ("Resize", ["x", "", "f"], {}, {"f": FACTORS[:2]}, 13, IMAGE, "resizes 4 axes by the scales"),
    "resize rounding": (
        "Resize",
        ["x", "", "f"],
        {"nearest_mode": "up"},
        {"f": FACTORS},
        13,
        IMAGE,
        "nearest_mode 'up'",
    ),
    "resize computed": ("Resize", ["x", "", "x"], {}, {}, 13, IMAGE, "to be a constant"),
    "gelu by tanh": ("Gelu", ["x"], {"approximate": "sine"}, {}, 20, IMAGE, "approximates by 'sine'"),
    "channels": ("Conv", ["x", "w"], {}, {"w": floats(3, 5, 3, 3)}, 11, IMAGE, "Conv node 'n' .*do not fit"),
    "group": ("Conv", ["x", "w"], {"group": 0}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, "group 0"),
    "bias": (
        "Conv",
        ["x", "w", "b"],
        {},
        {"w": floats(3, 4, 3, 3), "b": floats(4)},
        11,
        IMAGE,
        r"bias of shape \(4,\)",
    ),
    "kernel": ("Conv", ["x", "w"], {"kernel_shape": [5, 5]}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, "kernel_shape"),
    "stride 0": ("Conv", ["x", "w"], {"strides": [0, 1]}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, r"strides \(0, 1\)"),
    "negative pads": ("Conv", ["x", "w"], {"pads": [-1, 0, 0, 0]}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, "pads"),
    "too small": ("Conv", ["x", "w"], {}, {"w": floats(3, 4, 11, 3)}, 11, IMAGE, "larger than its padded image"),
    "auto_pad": ("Conv", ["x", "w"], {"auto_pad": "SOME"}, {"w": floats(3, 4, 3, 3)}, 11, IMAGE, "auto_pad 'SOME'"),
    "one-dimensional": ("Conv", ["x", "w"], {}, {"w": floats(3, 4, 3)}, 11, (2, 4), "channels and pixels"),
    "attribute type": (
        "Conv",
        ["x", "w"],
        {"group": "two"},
        {"w": floats(3, 4, 3, 3)},
        11,
        IMAGE,
        "group, which must be",
    ),
    "norm of pixels": ("BatchNormalization", ["x", *"sbmv"], {"spatial": 0}, NORM, 7, IMAGE, "spatial is 0"),
    "norm size": ("BatchNormalization", ["x", *"sbmv"], {}, NORM, 9, (1, 5, 2, 2), "needs 5 values in input 2"),
    "pool pads": ("MaxPool", ["x"], {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, {}, 12, IMAGE, "as large as"),
    "pool of nothing": ("MaxPool", [], {"kernel_shape": [2, 2]}, {}, 12, IMAGE, "input"),
    "pool kernel": ("MaxPool", ["x"], {}, {}, 12, IMAGE, "kernel_shape"),
    "add shapes": ("Add", ["x", "c"], {}, {"c": floats(5, 1, 1)}, 13, IMAGE, "do not fit"),
    "add types": ("Add", ["x", "c"], {}, {"c": ints(1)}, 13, IMAGE, "float32 and int64"),
    "gemm sizes": ("Gemm", ["x", "w"], {}, {"w": floats(5, 6)}, 11, (3, 6), "do not fit"),
    "matmul sizes": ("MatMul", ["x", "w"], {}, {"w": floats(5, 6)}, 13, (3, 6), "do not fit"),
    "softmax axis": ("Softmax", ["x"], {"axis": 4}, {}, 13, IMAGE, "names the axis 4"),
    "concat": ("Concat", ["x", "c"], {"axis": 1}, {"c": floats(2, 4, 9, 8)}, 13, IMAGE, "do not fit"),
    "reshape": ("Reshape", ["x", "s"], {}, {"s": ints(5, -1)}, 13, IMAGE, "another number of elements"),
    "reshape computed": ("Reshape", ["x", "x"], {}, {}, 13, (2, 3), "to be a constant"),
    "reshape copies": ("Reshape", ["x", "s"], {}, {"s": ints(1, 1, 1, 1, 0)}, 13, IMAGE, "copies axis 4"),
    "squeeze": ("Squeeze", ["x", "a"], {}, {"a": ints(1)}, 13, IMAGE, "not all of which are 1"),
    "unsqueeze twice": ("Unsqueeze", ["x", "a"], {}, {"a": ints(1, 1)}, 13, IMAGE, "names an axis twice"),
    "perm": ("Transpose", ["x"], {"perm": [0, 0, 1, 2]}, {}, 13, IMAGE, "is no order of 4 axes"),
    "lrn size": ("LRN", ["x"], {"size": 0}, {}, 13, IMAGE, "size 0"),
    "clip nan": ("Clip", ["x", "c"], {}, {"c": np.float32(np.nan)}, 13, IMAGE, "NaN"),
    "cast": ("Cast", ["x"], {"to": 8}, {}, 13, IMAGE, "element type 8"),
    "constant of text": ("Constant", [], {"value_string": "a"}, {}, 13, IMAGE, "no value the engine can read"),
    "gather": (
        "Gather",
        ["c", "i"],
        {},
        {"c": ints(1, 2), "i": ints(5)},
        13,
        IMAGE,
        "cannot be computed .*out of bounds",
    ),
    "gather by floats": ("Gather", ["x", "x"], {}, {}, 13, IMAGE, "integers as indices"),
    "slice step": (
        "Slice",
        ["x", "a", "b", "a", "a"],
        {},
        {"a": ints(0), "b": ints(1)},
        13,
        IMAGE,
        "do not fit together",
    ),
    "negative fill": ("ConstantOfShape", ["a"], {}, {"a": ints(-1)}, 13, IMAGE, "impossible shape"),
    "huge fill": ("ConstantOfShape", ["a"], {}, {"a": ints(2**40)}, 13, IMAGE, "impossible shape"),
    "many axes": ("ConstantOfShape", ["a"], {}, {"a": ints(*[1] * 65)}, 13, IMAGE, "impossible shape"),
    "flatten": ("Flatten", ["x"], {"axis": 5}, {}, 13, IMAGE, "names the axis 5"),
    "norm of a vector": ("BatchNormalization", ["x", *"sbmv"], {}, NORM, 9, (4,), "channels on its second axis"),
    "dropout trains": (
        "Dropout",
        ["x", "", "t"],
        {},
        {"t": np.array(True)},
        13,
        IMAGE,
        "draws other numbers in every run",
    ),
    "input missing": ("Add", ["x"], {}, {}, 13, IMAGE, "has 1 inputs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_node_is_named_in_one_sentence(name):
    operator, inputs, attributes, constants, opset, shape, sentence = WRONG[name]
    node = helper.make_node(operator, inputs, ["y"], "n", **attributes)
    with pytest.raises(PowerlabError, match=sentence) as caught:
        optimise(load_bytes(onnx_bytes([node], {"x": shape}, constants=constants, opset=opset)))
    assert f"{operator} node 'n'" in str(caught.value)
