"""Transposed convolutions, rows of pixels, pools and resizes of any kind: all as ONNX Runtime computes them."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import check_against_ort, check_session, load_bytes, onnx_bytes
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper
from operator_cases import IMAGE, floats, ints
from window_cases import ROW, VOLUME

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen.general import plane_room
from powerlab.engine.ir.statistics import operator_counts
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers

SMALL = settings(max_examples=40, deadline=None)


def one_node(operator, shape, constants, opset=17, **attributes):
    node = helper.make_node(operator, ["x", *constants], ["y"], "n", **attributes)
    return onnx_bytes([node], {"x": shape}, constants=constants, opset=opset)


@pytest.mark.parametrize("p", [3, 64, 10**6])
@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
def test_norms_of_a_high_power_hold_numbers_whose_powers_no_float_holds(p, tier, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    x = np.float32([[[0.2, -0.1, 4, 4e9, 0, 0, 3e-20, np.inf, 1, np.nan]]])
    graph = load_bytes(one_node("LpPool", x.shape, {}, kernel_shape=[2], strides=[2], p=p))
    session = Session(optimise(graph), 1)
    with np.errstate(all="ignore"):
        sizes = np.abs(x.astype(np.float64)).reshape(1, 1, -1, 2)
        most = sizes.max(-1)
        expected = most * ((sizes / np.where(most > 0, most, 1)[..., None]) ** p).sum(-1) ** (1 / p)
    expected[..., 3] = np.inf
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-6)


@SMALL
@given(data=st.data())
def test_any_transposed_convolution(data):
    draw = data.draw
    axes = draw(st.sampled_from([1, 2, 2]))
    numbers = lambda low, high: draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes))  # noqa: E731
    group = draw(st.sampled_from([1, 1, 2, 5]))
    inputs, outputs = group * draw(st.sampled_from([1, 3, 20])), draw(st.sampled_from([1, 2, 17]))
    kernel, strides, dilations = numbers(1, 4), numbers(1, 3), numbers(1, 3)
    attributes = {"strides": strides, "dilations": dilations, "group": group}
    more = [draw(st.integers(0, stride - 1)) for stride in strides]
    attributes["output_padding"] = more
    image = numbers(1, 5)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, reach[axis % axes] - 1)) for axis in range(2 * axes)]
    attributes["pads"] = pads
    size = [
        s * (length - 1) + m + r - before - after
        for s, length, m, r, before, after in zip(strides, image, more, reach, pads[:axes], pads[axes:], strict=True)
    ]
    assume(min(size) > 0)
    constants = {"w": floats(inputs, outputs, *kernel), "b": floats(outputs * group)}
    check_session(one_node("ConvTranspose", (2, inputs, *image), constants, **attributes))


@SMALL
@given(data=st.data())
def test_any_convolution_of_volumes(data):
    """Windows side by side, columns, few channels and many, planes left out and zeros around, perhaps by a Pad."""
    draw = data.draw
    numbers = lambda low, high: draw(st.lists(st.integers(low, high), min_size=3, max_size=3))  # noqa: E731
    inputs, outputs = draw(st.sampled_from([1, 3, 5, 20])), draw(st.sampled_from([1, 17]))
    kernel = draw(st.sampled_from([numbers(1, 3), [3, 1, 1], [2, 3, 3], [3, 3, 3], [2, 2, 2]]))
    strides = draw(st.sampled_from([numbers(1, 3), [1, 1, 1], kernel]))
    dilations = draw(st.sampled_from([numbers(1, 2), [1, 1, 1]]))
    pads = draw(st.sampled_from([numbers(0, 2) + numbers(0, 2), [0] * 6]))
    image = [k * draw(st.integers(1, 3)) for k in kernel]
    around = draw(st.sampled_from([[0] * 10, [0, 0, *numbers(0, 2), 0, 0, *numbers(0, 2)]]))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    whole = [image[at] + pads[at] + pads[at + 3] + around[at + 2] + around[at + 7] for at in range(3)]
    assume(all(size >= one for size, one in zip(whole, reach, strict=True)))
    nodes = [
        helper.make_node("Pad", ["x", "around"], ["p"]),
        helper.make_node("Conv", ["p", "w", "b"], ["c"], strides=strides, dilations=dilations, pads=pads),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"around": ints(*around), "w": floats(outputs, inputs, *kernel), "b": floats(outputs)}
    check_session(onnx_bytes(nodes, {"x": (2, inputs, *image)}, constants=constants))


@SMALL
@given(st.lists(st.integers(1, 3), min_size=3, max_size=3), st.sampled_from([1, 18]), st.booleans())
def test_transposed_convolutions_of_volumes_whose_windows_lie_side_by_side(kernel, channels, biased):
    constants = {"w": floats(channels, 5, *kernel)} | ({"b": floats(5)} if biased else {})
    data = one_node("ConvTranspose", (2, channels, 3, 2, 4), constants, strides=kernel)
    assert operator_counts(optimise(load_bytes(data)))["FusedConv"] == 1
    check_session(data)


def test_zeros_around_a_row_are_padding():
    """As causal convolutions over time have them, before each row alone."""
    nodes = [
        helper.make_node("Pad", ["x", "before"], ["p"]),
        helper.make_node("Conv", ["p", "w"], ["y"], dilations=[2]),
    ]
    constants = {"before": ints(0, 0, 4, 0, 0, 0), "w": floats(7, 5, 3)}
    data = onnx_bytes(nodes, {"x": (2, 5, 20)}, constants=constants)
    assert "Pad" not in operator_counts(optimise(load_bytes(data)))
    check_session(data)


@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
def test_what_follows_a_transposed_convolution_is_part_of_it(tier, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 2]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "b", "s"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    scale = np.abs(floats(6)) + 1
    constants = {"w": floats(4, 6, 2, 2), "s": scale, "b": floats(6), "v": floats(3, 6, 3, 3)}
    data = onnx_bytes(nodes, {"x": IMAGE}, constants=constants)
    assert operator_counts(check_against_ort(data)) == {"FusedConvTranspose": 1, "FusedConv": 1}
    check_session(data)


def test_no_product_of_a_transposed_convolution_is_with_a_zero_between_pixels():
    data = one_node("ConvTranspose", (1, 32, 8, 8), {"w": floats(32, 16, 2, 2)}, strides=[2, 2])
    session = Session(optimise(load_bytes(data)))
    assert sum(work.flops for work in session.work) == 2 * 32 * 16 * 16 * 16
    assert [kernel for kernel, _ in session.steps()].count("conv_direct") == 0  # names carry type and tile
    assert sum(kernel.startswith("conv_direct") for kernel, _ in session.steps()) == 4


def test_a_transposed_convolution_into_a_join_leaves_its_neighbours_alone():
    nodes = [
        helper.make_node("ConvTranspose", ["x", "w"], ["c"], strides=[2, 1], pads=[0, 1, 0, 1]),
        helper.make_node("Resize", ["x", "", "f"], ["r"], mode="linear"),
        helper.make_node("Concat", ["c", "r"], ["j"], axis=1),
        helper.make_node("Conv", ["j", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    constants = {
        "w": floats(4, 32, 2, 3),
        "f": np.array((1, 1, 2, 1), np.float32),
        "v": floats(3, 36, 3, 3),
    }
    check_session(onnx_bytes(nodes, {"x": IMAGE}, constants=constants))


def test_a_batch_goes_through_image_by_image():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("ConvTranspose", ["c", "v"], ["t"], strides=[2, 2]),
        helper.make_node("Resize", ["t", "", "f"], ["y"], mode="linear"),
    ]
    constants = {"w": floats(16, 3, 3, 3), "v": floats(16, 16, 2, 2), "f": np.array((1, 1, 1.5, 1.5), np.float32)}
    check_session(onnx_bytes(nodes, {"x": (4, 3, 64, 64)}, constants=constants))


@SMALL
@given(data=st.data())
def test_any_pool(data):
    draw = data.draw
    operator = draw(st.sampled_from(["MaxPool", "AveragePool", "LpPool"]))
    axes = draw(st.integers(1, 3))
    image = tuple(draw(st.integers(3, 8)) for _ in range(axes))
    kernel = [draw(st.integers(1, 3)) for _ in range(axes)]
    dilations = [draw(st.integers(1, 2)) for _ in range(axes)]
    pads = [draw(st.integers(0, kernel[axis % axes] - 1)) for axis in range(2 * axes)]
    attributes = {"kernel_shape": kernel, "strides": [draw(st.integers(1, 3)) for _ in range(axes)], "pads": pads}
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    assume(all(size >= one for size, one in zip(image, reach, strict=True)))
    if operator != "LpPool":
        attributes |= {"dilations": dilations, "ceil_mode": draw(st.integers(0, 1))}
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    channels = draw(st.sampled_from([1, 17]))
    check_session(one_node(operator, (2, channels, *image), {}, opset=19, **attributes))


@SMALL
@given(data=st.data())
def test_pools_of_rows_that_lie_in_no_blocks(data):
    """Of an input, or of a part of one; rows that are long, or cut into several lines."""
    draw = data.draw
    operator, columns = draw(st.sampled_from(["MaxPool", "AveragePool"])), draw(st.sampled_from([8, 31, 70, 4500]))
    image = (draw(st.integers(2, 5)), draw(st.integers(2, 5)), columns) if columns < 100 else (2, columns)
    kernel = [draw(st.integers(1, 3)) for _ in image]
    strides = [draw(st.integers(1, 3)) for _ in image]
    pads = [draw(st.integers(0, kernel[axis % len(image)] - 1)) for axis in range(2 * len(image))]
    assume(all(size >= length for size, length in zip(image, kernel, strict=True)))
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": draw(st.integers(0, 1))}
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    shape = (2, 5, *image)
    nodes = [
        helper.make_node("Slice", ["x", "one", "four", "one"], ["part"]),
        helper.make_node(operator, ["part"], ["y"], "n", **attributes),
    ]
    constants = {"one": ints(1), "four": ints(4)}
    check_session(onnx_bytes(nodes, {"x": shape}, constants=constants, opset=19))


def test_a_pool_of_what_lies_in_rows_brings_it_into_no_blocks():
    data = one_node("MaxPool", (1, 3, 8, 40, 40), {}, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    kernels = [kernel for kernel, _ in Session(optimise(load_bytes(data)), 1).steps()]
    assert not any(kernel.startswith("reorder") for kernel in kernels), kernels


@SMALL
@given(
    groups=st.sampled_from([1, 2, 5]),
    channels=st.sampled_from([(1, 1), (2, 3), (5, 4), (3, 7)]),
    cached=st.sampled_from([1, 2**17]),
    data=st.data(),
)
def test_groups_of_volumes(groups, channels, cached, data):
    """With room for one channel of a group, or for all; and with too few columns for a vector, or for more than one."""
    draw, (inputs, outputs) = data.draw, channels
    kernel, strides, dilations = ([draw(st.integers(1, 3)) for _ in range(3)] for _ in range(3))
    reach = [(taps - 1) * apart + 1 for taps, apart in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, reach[axis % 3])) for axis in range(6)]
    image = [reach[0] + draw(st.integers(0, 2)), reach[1] + draw(st.integers(0, 5)), draw(st.sampled_from([9, 40, 75]))]
    weights = floats(groups * outputs, inputs, *kernel)
    constants = {"w": weights, "b": floats(len(weights))} if draw(st.booleans()) else {"w": weights}
    attributes = {"group": groups, "strides": strides, "dilations": dilations, "pads": pads}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plane_room, "_CACHED_FLOATS", cached)
        check_session(one_node("Conv", (2, groups * inputs, *image), constants, **attributes))


def test_what_follows_a_convolution_over_volumes_is_part_of_it():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 6),
        helper.make_node("BatchNormalization", ["c", "s", "b", "b", "s"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Conv", ["r", "v", "b"], ["d"], strides=[1, 2, 2], pads=[0, 1, 1, 0, 1, 1]),
        helper.make_node("MaxPool", ["d"], ["y"], kernel_shape=[2, 2, 2], strides=[2, 2, 2]),
    ]
    constants = {
        "w": floats(18, 3, 3, 3, 3),
        "s": np.abs(floats(18)) + 1,
        "b": floats(18),
        "v": floats(18, 18, 2, 3, 3) / 10,
    }
    data = onnx_bytes(nodes, {"x": VOLUME}, constants=constants)
    assert operator_counts(check_against_ort(data))["FusedVolumeConv"] == 2
    check_session(data)


@pytest.mark.parametrize("tier", [tier.name for tier in available_tiers()])
def test_large_volumes_are_convolved_by_winograd(tier, monkeypatch):
    monkeypatch.setenv(TIER_VARIABLE, tier)
    data = one_node("Conv", (1, 24, 3, 30, 31), {"w": floats(32, 24, 2, 3, 3)}, pads=[1, 1, 1, 0, 1, 1])
    session = check_session(data)
    assert any("winograd" in kernel for kernel, _ in session.steps())


COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]


@SMALL
@given(data=st.data())
def test_any_resize(data):
    draw = data.draw
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    shape = (2, draw(st.sampled_from([1, 18])), draw(st.integers(2, 7)), draw(st.integers(2, 7)))
    attributes = {"mode": mode, "coordinate_transformation_mode": draw(st.sampled_from(COORDINATES))}
    if mode == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]))
    if mode == "cubic":
        attributes |= {
            "cubic_coeff_a": draw(st.sampled_from([-0.5, -0.75])),
            "exclude_outside": draw(st.integers(0, 1)),
        }
    # Powers of two, so that no coordinate lies beside where it should by rounding.
    size = (*shape[:2], *(max(1, int(length * draw(st.sampled_from([0.5, 1, 2, 4])))) for length in shape[2:]))
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], **attributes)
    assume(all(new in (old, 2 * old, 4 * old) or 2 * new == old for new, old in zip(size, shape, strict=True)))
    check_session(onnx_bytes([node], {"x": shape}, constants={"s": ints(*size)}, opset=19))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_antialias_takes_every_old_pixel_into_account(mode):
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode=mode, antialias=1, axes=[2, 3], exclude_outside=1)
    check_session(onnx_bytes([node], {"x": (1, 3, 24, 30)}, constants={"s": ints(8, 9)}, opset=18), tolerance=1e-3)


def test_pixels_last_are_resized_too():
    node = helper.make_node("Resize", ["x", "", "f"], ["y"], mode="linear")
    factors = np.array((1, 2, 2, 1), np.float32)
    check_session(onnx_bytes([node], {"x": (2, 5, 6, 3)}, constants={"f": factors}, opset=13))


def test_a_network_over_rows_of_pixels_has_views_only_at_its_ends():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1]),
        helper.make_node("BatchNormalization", ["a", "s", "b", "b", "s"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2], strides=[2]),
        helper.make_node("Conv", ["p", "v", "b"], ["c"], pads=[1, 1]),
        helper.make_node("Sigmoid", ["c"], ["g"]),
        helper.make_node("Mul", ["c", "g"], ["m"]),
        helper.make_node("ConvTranspose", ["m", "u"], ["t"], strides=[2]),
        helper.make_node("Concat", ["t", "r"], ["j"], axis=1),
        helper.make_node("Conv", ["j", "z"], ["k"], pads=[1, 1]),
        helper.make_node("Add", ["k", "r"], ["y"]),
    ]
    constants = {
        "w": floats(16, 4, 3),
        "s": np.abs(floats(16)) + 1,
        "b": floats(16),
        "v": floats(16, 16, 3),
        "u": floats(16, 16, 2),
        "z": floats(16, 32, 3),
    }
    data = onnx_bytes(nodes, {"x": (2, 4, 12)}, constants=constants)
    counts = operator_counts(check_against_ort(data))
    assert counts["Reshape"] == 2
    assert counts["FusedConv"] == 3
    check_session(data)


REFUSED = {
    "weights of a row for an image": ("Conv", IMAGE, {"w": floats(2, 4, 3)}, {}, "do not fit"),
    "a transposed convolution with a wrong weight": (
        "ConvTranspose",
        IMAGE,
        {"w": floats(3, 2, 3, 3)},
        {},
        "weight of",
    ),
    "a transposed convolution with a wrong group": (
        "ConvTranspose",
        IMAGE,
        {"w": floats(4, 2, 3, 3)},
        {"group": 3},
        "group 3",
    ),
    "a transposed convolution with nothing left": (
        "ConvTranspose",
        IMAGE,
        {"w": floats(4, 2, 1, 1)},
        {"pads": [9, 9, 9, 9]},
        "no more pixels",
    ),
    "a pool of nothing": ("GlobalMaxPool", (2, 3), {}, {}, "images, channels and pixels"),
    "a norm of no power": ("LpPool", ROW, {}, {"kernel_shape": [2], "p": 0}, "p 0"),
    "an unknown way to resize": (
        "Resize",
        IMAGE,
        {"r": floats(0), "f": floats(4) ** 2},
        {"mode": "best"},
        "mode 'best'",
    ),
    "a resize to nothing": (
        "Resize",
        IMAGE,
        {"r": floats(0), "f": np.array((1, 1, 0.01, 1), np.float32)},
        {"mode": "linear"},
        "an axis of 0",
    ),
    "a crop without its box": (
        "Resize",
        IMAGE,
        {"r": floats(0), "f": np.ones(4, np.float32)},
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        "crops by 0 numbers",
    ),
    "the nearest pixel without aliases": (
        "Resize",
        IMAGE,
        {"r": floats(0), "f": np.full(4, 2, np.float32)},
        {"antialias": 1},
        "antialias",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_is_named_in_one_sentence(name):
    operator, shape, constants, attributes, reason = REFUSED[name]
    with pytest.raises(PowerlabError, match=reason) as refused:
        optimise(load_bytes(one_node(operator, shape, constants, opset=18, **attributes)))
    assert f"{operator} node 'n'" in str(refused.value)
    assert "\n" not in str(refused.value)
