"""Each operator's gradient against central differences in float64."""

from __future__ import annotations

import numpy as np
import pytest
from engine_reference import fused_conv_transpose
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


@pytest.mark.parametrize(
    ("image", "weight", "attributes"),
    [
        ((2, 3, 3, 4), (3, 2, 3, 2), {}),
        ((1, 4, 3, 3), (4, 2, 3, 3), {"group": 2, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((1, 2, 3, 3), (2, 2, 2, 2), {"strides": [3, 2], "output_padding": [2, 1], "dilations": [1, 2]}),
    ],
)
def test_transposed_convolutions(image, weight, attributes):
    group = attributes.get("group", 1)
    inputs = {"x": normal(*image), "w": normal(*weight), "b": normal(weight[1] * group)}
    axes = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0), "output_padding": (0, 0), **attributes}
    size = [
        (image[axis + 2] - 1) * axes["strides"][axis]
        + (weight[axis + 2] - 1) * axes["dilations"][axis]
        + 1
        + axes["output_padding"][axis]
        - axes["pads"][axis]
        - axes["pads"][axis + 2]
        for axis in (0, 1)
    ]
    how = {**axes, "group": group, "pads": axes["pads"][:2], "clamp": (-np.inf, np.inf)}

    def judge(x, w, b):
        apart = w.reshape(group, -1, *w.shape[1:]).swapaxes(1, 2)
        ordered = apart.reshape(-1, *apart.shape[2:])
        return fused_conv_transpose(how, x, ordered, b, None, (image[0], len(b), *size))

    check_gradients("ConvTranspose", inputs, judge=judge, **attributes)


def test_instances_and_groups_are_normalised():
    def judge(x, s, b):
        rows = x.reshape(2, 2, -1)
        apart = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
        return apart.reshape(x.shape) * s[:, None] + b[:, None]

    check_gradients("InstanceNormalization", {"x": normal(2, 3, 2, 3), "s": positive(3), "b": normal(3)})
    inputs = {"x": normal(2, 4, 3), "s": positive(4), "b": normal(4)}
    check_gradients("GroupNormalization", inputs, judge=judge, opset=21, num_groups=2)


def test_rows_are_scaled_by_their_root_mean_square():
    def judge(x, s):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * s

    check_gradients("RMSNormalization", {"x": normal(2, 3, 4), "s": positive(4)}, judge=judge, opset=23)


def test_a_nearest_resize_by_whole_factors():
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    scales = {"scales": np.asarray([1, 1, 2, 3], np.float32)}
    check_gradients("Resize", {"x": normal(1, 2, 2, 3)}, constants=scales, order=["x", "", "scales"], **how)


@pytest.mark.parametrize("size", [1, 3, 4])
def test_local_response_normalisation(size):
    def judge(x):  # the reference of onnx stops at as many channels as there are images
        sums = [np.sum(x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1] ** 2, axis=1) for c in range(5)]
        return x / (1.5 + 0.3 / size * np.stack(sums, axis=1)) ** 0.6

    check_gradients("LRN", {"x": normal(2, 5, 2, 2)}, judge=judge, size=size, alpha=0.3, beta=0.6, bias=1.5)


def test_a_part_that_nobody_reads_is_zeros():
    check_gradients("Split", {"x": normal(2, 5)}, constants={"s": ints(2, 3)}, outputs=("y", "z"), axis=1)


@pytest.mark.parametrize(("indices", "axis"), [([1, 1, 0], 0), ([[0, 2], [2, -1]], 1), (1, 1)])
def test_what_was_picked_twice_gets_both(indices, axis):
    check_gradients("Gather", {"x": normal(2, 3, 2)}, constants={"i": np.asarray(indices)}, axis=axis)
