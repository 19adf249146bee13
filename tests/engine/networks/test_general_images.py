"""What kernels in blocks do not take: computed weights, volumes, places of maxima, regions, grids, and norms."""

from __future__ import annotations

import numpy as np
import pytest
from general_models import check_by_ort, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_cases import IMAGE, floats, ints

from powerlab.domain.errors import PowerlabError

SMALL = settings(max_examples=40, deadline=None)


@SMALL
@given(data=st.data())
def test_any_convolution_of_computed_weights_or_volumes(data):
    draw = data.draw
    operator = draw(st.sampled_from(["Conv", "ConvTranspose"]))
    axes = draw(st.integers(1, 3))
    group = draw(st.sampled_from([1, 1, 2]))
    kernel, strides, dilations = ([draw(st.integers(1, 3)) for _ in range(axes)] for _ in range(3))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, reach[axis % axes] - 1)) for axis in range(2 * axes)]
    image = [draw(st.integers(reach[axis], reach[axis] + 4)) for axis in range(axes)]
    inputs, outputs = 2 * group, 3 * group
    weight = (inputs, 3) if operator == "ConvTranspose" else (outputs, 2)
    x, w, b = floats(2, inputs, *image), floats(*weight, *kernel), floats(outputs)
    computed = draw(st.booleans()) or axes < 3
    given_inputs, constants = ({"x": x, "w": w}, {"b": b}) if computed else ({"x": x}, {"w": w, "b": b})
    file = node_bytes(
        operator,
        given_inputs,
        constants=constants,
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=group,
        order=["x", "w", *draw(st.sampled_from([[], ["b"]]))],
    )
    check_by_ort(file, given_inputs, rtol=1e-4, atol=1e-5)


@SMALL
@given(data=st.data())
def test_places_of_maxima(data):
    draw = data.draw
    axes = draw(st.integers(1, 3))
    kernel, strides, dilations = ([draw(st.integers(1, most)) for _ in range(axes)] for most in (3, 2, 2))
    pads = [draw(st.integers(0, kernel[axis % axes] - 1)) for axis in range(2 * axes)]
    x = {"x": floats(2, 3, *[draw(st.integers(5, 8)) for _ in range(axes)])}
    windows = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    if axes == 2:
        windows["storage_order"] = draw(st.integers(0, 1))
    check_by_ort(node_bytes("MaxPool", x, outputs=("y", "places"), **windows), x)


def test_places_name_the_maxima():
    x = {"x": floats(1, 2, 6, 6)}
    found = run_engine(node_bytes("MaxPool", x, outputs=("y", "places"), kernel_shape=[2, 2], strides=[2, 2]), x)
    np.testing.assert_array_equal(x["x"].reshape(-1)[found["places"]], found["y"])


def test_maxima_go_back_to_their_places():
    x = {"x": floats(2, 3, 3, 4), "i": np.arange(72, dtype=np.int64).reshape(2, 3, 3, 4) * 4 + 1}
    check_by_ort(node_bytes("MaxUnpool", x, kernel_shape=[2, 2], strides=[2, 2], opset=11), x)


def test_a_place_outside_is_told_by_its_node():
    x = {"x": floats(1, 1, 1, 2), "i": np.array([[[[0, 99]]]])}
    with pytest.raises(PowerlabError, match="'n'"):
        run_engine(node_bytes("MaxUnpool", x, kernel_shape=[2, 2], strides=[2, 2]), x)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("coordinates", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [0, 2])
def test_regions_of_interest(mode, coordinates, samples):
    corners = np.sort(np.abs(floats(6, 2, 2)) * 12, axis=1).reshape(6, 4)
    x = {"x": np.abs(floats(3, 5, 14, 11)), "r": corners, "i": ints(0, 2, 1, 2, 0, 1)}
    file = node_bytes(
        "RoiAlign",
        x,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        sampling_ratio=samples,
        output_height=3,
        output_width=4,
        spatial_scale=0.75,
    )
    check_by_ort(file, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_of_many_samples(mode):
    x = {"x": np.abs(floats(1, 5, 9, 9)), "r": np.float32([[0, 1, 8, 7], [2, 2, 3, 3]]), "i": ints(0, 0)}
    file = node_bytes("RoiAlign", x, mode=mode, output_height=2, output_width=70, sampling_ratio=2, opset=16)
    check_by_ort(file, x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_of_many_channels(mode):
    corners = np.sort(np.abs(floats(4, 2, 2)) * 9, axis=1).reshape(4, 4)
    x = {"x": np.abs(floats(2, 150, 8, 9)), "r": corners, "i": ints(0, 1, 1, 0)}
    file = node_bytes("RoiAlign", x, mode=mode, output_height=3, output_width=18, sampling_ratio=2, opset=16)
    check_by_ort(file, x, rtol=1e-4, atol=1e-5)


def test_regions_began_at_corners_of_pixels_before_opset_16():
    x = {"x": np.abs(floats(1, 2, 9, 9)), "r": np.float32([[1, 1, 6, 7]]), "i": ints(0)}
    check_by_ort(node_bytes("RoiAlign", x, output_height=2, output_width=2, sampling_ratio=2, opset=10), x, rtol=1e-4)


def test_a_region_of_no_image_is_told_by_its_node():
    x = {"x": floats(1, 2, 9, 9), "r": np.float32([[1, 1, 6, 7]]), "i": ints(3)}
    with pytest.raises(PowerlabError, match="'n'"):
        run_engine(node_bytes("RoiAlign", x), x)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids_of_coordinates(mode, padding, corners):
    x = {"x": floats(2, 3, 6, 5), "g": floats(2, 4, 7, 2)}
    file = node_bytes("GridSample", x, mode=mode, padding_mode=padding, align_corners=corners, opset=16)
    check_by_ort(file, x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids_in_volumes(mode, corners):
    x = {"x": floats(2, 3, 4, 6, 5), "g": floats(2, 3, 4, 7, 3)}
    file = node_bytes("GridSample", x, mode=mode, align_corners=corners, opset=20)
    check_by_ort(file, x, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("corners", [0, 1])
def test_grids_of_affine_transforms(size, corners):
    axes = len(size) - 2
    x = {"t": floats(2, axes, axes + 1)}
    file = node_bytes("AffineGrid", x, constants={"s": ints(*size)}, align_corners=corners, opset=20)
    check_by_ort(file, x, atol=1e-5)


@pytest.mark.parametrize("shape", [IMAGE, (2, 4, 33), (1, 4, 3, 50, 60)])
def test_instances(shape):
    x = {"x": floats(*shape) * 3 + 40}
    constants = {"s": floats(4), "b": floats(4)}
    check_by_ort(node_bytes("InstanceNormalization", x, constants=constants), x, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("opset", "numbers"), [(18, 2), (21, 6)])
def test_groups(opset, numbers):
    """Scale and shift are of groups in opset 18, of channels since 21; checked in float64."""
    x, scale, shift = {"x": floats(3, 6, 5, 7) + 10}, floats(numbers), floats(numbers)
    file = node_bytes("GroupNormalization", x, constants={"s": scale, "b": shift}, num_groups=2, opset=opset)
    wide = x["x"].astype(np.float64).reshape(3, 2, -1)
    normal = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    of_channels = (np.repeat(one, 6 // numbers).reshape(6, 1, 1) for one in (scale, shift))
    times, plus = of_channels
    np.testing.assert_allclose(
        run_engine(file, x)["y"], normal.reshape(3, 6, 5, 7) * times + plus, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("p", [1, 2])
def test_lengths(axis, p):
    x = {"x": floats(3, 4, 5)}
    x["x"][:, :, 2] = 0
    found = run_engine(node_bytes("LpNormalization", x, axis=axis, p=p), x)["y"]
    norm = np.linalg.norm(x["x"].astype(np.float64), ord=p, axis=axis, keepdims=True)
    np.testing.assert_allclose(found, x["x"] / np.where(norm == 0, 1, norm), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [2, 3]])
def test_means_and_variances_over_any_axes(axes):
    x = {"x": floats(*IMAGE) + 5}
    wide = x["x"].astype(np.float64)
    over = tuple(axes)
    expected = (wide - wide.mean(over, keepdims=True)) / (wide.std(over, keepdims=True) + 1e-9)
    found = run_engine(node_bytes("MeanVarianceNormalization", x, axes=axes), x)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


REFUSED = {
    "a convolution in four dimensions": (
        "Conv",
        {"x": floats(1, 1, 2, 2, 2, 2), "w": floats(1, 1, 1, 1, 1, 1)},
        {},
        "4 axes",
    ),
    "regions of three numbers": (
        "RoiAlign",
        {"x": floats(*IMAGE), "r": floats(2, 3), "i": ints(0, 0)},
        {},
        "regions of the shape",
    ),
    "a grid of three numbers": ("GridSample", {"x": floats(*IMAGE), "g": floats(2, 3, 3, 3)}, {}, "do not fit"),
    "an unknown padding": (
        "GridSample",
        {"x": floats(*IMAGE), "g": floats(2, 3, 3, 2)},
        {"padding_mode": "wrap"},
        "padding_mode 'wrap'",
    ),
    "places of another shape": (
        "MaxUnpool",
        {"x": floats(*IMAGE), "i": ints(1)},
        {"kernel_shape": [2, 2]},
        "places of",
    ),
    "groups that do not divide": (
        "GroupNormalization",
        {"x": floats(*IMAGE), "s": floats(4), "b": floats(4)},
        {"num_groups": 3},
        "4 channels in 3 groups",
    ),
    "another norm": ("LpNormalization", {"x": floats(2, 3)}, {"p": 3}, "p 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(name):
    operator, inputs, attributes, reason = REFUSED[name]
    with pytest.raises(PowerlabError, match=reason) as refused:
        run_engine(node_bytes(operator, inputs, opset=18, **attributes), inputs)
    assert f"{operator} node 'n'" in str(refused.value)
    assert "\n" not in str(refused.value)
