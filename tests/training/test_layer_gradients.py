"""Each operator's gradient against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_checks import check_gradients

GENERATOR = np.random.default_rng(5)


def normal(*shape):
    """Return numbers, none of which is nearer to 0, or to another, than a central difference reaches."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count / 2 + 0.3) * (3.7 / max(count, 1))
    return GENERATOR.permutation(values).reshape(shape).astype(np.float32)


def positive(*shape):
    return np.abs(normal(*shape)) + np.float32(0.2)


def ints(*values):
    return np.asarray(values, np.int64)


def test_an_old_softmax_goes_over_all_axes_behind_its_own():
    def judge(a):
        power = np.exp(a)
        return power / power.sum(axis=(1, 2), keepdims=True)

    check_gradients("Softmax", {"a": normal(2, 3, 2)}, opset=11, axis=1, judge=judge)


@pytest.mark.parametrize(
    "operator", ["ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMin"]
)
@pytest.mark.parametrize(("axes", "keepdims"), [((1,), 1), ((0, 2), 0), ((-1,), 0)])
def test_reductions(operator, axes, keepdims):
    check_gradients(operator, {"a": normal(2, 3, 2)}, constants={"axes": ints(*axes)}, keepdims=keepdims)


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("Reshape", {"s": ints(3, 4)}, {}),
        ("Flatten", {}, {"axis": 2}),
        ("Transpose", {}, {"perm": [2, 0, 1]}),
        ("Identity", {}, {}),
        ("Unsqueeze", {"s": ints(1)}, {}),
        ("Slice", {"b": ints(1, 0), "e": ints(3, 1), "x": ints(1, 2)}, {}),
        ("Slice", {"b": ints(-1), "e": ints(99), "x": ints(1)}, {}),
        ("Expand", {"s": ints(2, 2, 3, 2)}, {}),
        ("Pad", {"p": ints(0, 1, 0, 1, 0, 2)}, {}),
    ],
)
def test_moved_elements_are_moved_back(operator, constants, attributes):
    check_gradients(operator, {"a": normal(2, 3, 2)}, constants=constants, **attributes)


def test_squeeze():
    check_gradients("Squeeze", {"a": normal(2, 1, 2)}, constants={"s": ints(1)})


def test_concat_gives_each_part_its_own():
    check_gradients("Concat", {"a": normal(2, 1, 2), "b": normal(2, 3, 2)}, axis=1)


@pytest.mark.parametrize(
    ("image", "weight", "attributes"),
    [
        ((2, 3, 4, 5), (2, 3, 3, 3), {}),
        ((1, 2, 5, 5), (3, 2, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((2, 2, 6, 5), (2, 2, 3, 2), {"strides": [2, 2], "pads": [1, 0, 0, 1]}),
        ((1, 4, 4, 4), (4, 2, 2, 2), {"group": 2}),
        ((2, 3, 5, 5), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ((1, 2, 7, 6), (1, 2, 3, 2), {"dilations": [2, 3]}),
        ((1, 2, 8, 8), (2, 2, 3, 3), {"strides": [3, 2], "dilations": [2, 1], "auto_pad": "SAME_UPPER"}),
        ((2, 3, 3, 3), (4, 3, 1, 1), {}),
        ((2, 2, 7), (3, 2, 3), {"strides": [2]}),
    ],
)
def test_convolutions(image, weight, attributes):
    check_gradients("Conv", {"x": normal(*image), "w": normal(*weight), "b": normal(weight[0])}, **attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [3, 2], "strides": [1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    ],
)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_pools_of_windows(operator, attributes):
    check_gradients(operator, {"x": normal(2, 2, 5, 6)}, **attributes)


def test_an_average_may_count_its_padding():
    check_gradients(
        "AveragePool",
        {"x": normal(1, 2, 5, 5)},
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        count_include_pad=1,
    )


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalMaxPool"])
def test_pools_of_whole_images(operator):
    check_gradients(operator, {"x": normal(2, 3, 3, 2)})


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2, 3)])
def test_a_batch_norm_that_trains(shape):
    inputs = {"x": normal(*shape), "s": positive(3), "b": normal(3)}
    constants = {"m": np.zeros(3, np.float32), "v": np.ones(3, np.float32)}
    order = ["x", "s", "b", "m", "v"]
    check_gradients(
        "BatchNormalization", inputs, constants=constants, order=order, training_mode=1, outputs=("y", "m2", "v2")
    )


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis):
    inner = (4,) if axis == -1 else (3, 4)
    check_gradients("LayerNormalization", {"x": normal(2, 3, 4), "s": positive(*inner), "b": normal(*inner)}, axis=axis)
