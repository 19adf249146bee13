"""Col2Im against ONNX Runtime; DeformConv against a convolution of what it should have sampled."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine_models import check_session, load_bytes, onnx_bytes
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.passes import optimise


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1)])
@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 2, 1)])
def test_blocks_are_put_together_as_onnx_runtime_does(strides, dilations, pads):
    image, block = (9, 10), (3, 2)
    grid = [
        (image[axis] + pads[axis] + pads[axis + 2] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in (0, 1)
    ]
    nodes = [
        helper.make_node("Col2Im", ["x", "image", "block"], ["y"], strides=strides, dilations=dilations, pads=pads)
    ]
    constants = {"image": np.array(image), "block": np.array(block)}
    check_session(onnx_bytes(nodes, {"x": (2, 3 * 6, grid[0] * grid[1])}, constants=constants, opset=18))


def sampled(image, y, x):
    """Bilinear interpolation, with zeros outside."""
    low_y, low_x = int(np.floor(y)), int(np.floor(x))
    total = 0.0
    for row, column in itertools.product((low_y, low_y + 1), (low_x, low_x + 1)):
        if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
            total += image[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def deformed(x, w, offsets, mask, groups, *, strides, pads, dilations):
    """The operator as its definition has it, number by number."""
    batch, channels, *_ = x.shape
    outputs, inner, kernel_h, kernel_w = w.shape
    height, width = offsets.shape[2:]
    made = np.zeros((batch, outputs, height, width))
    taps = list(itertools.product(range(kernel_h), range(kernel_w)))
    for n, o, i, j in itertools.product(range(batch), range(outputs), range(height), range(width)):
        first = o // (outputs // (channels // inner)) * inner
        for c, (t, (ky, kx)) in itertools.product(range(inner), enumerate(taps)):
            group = (first + c) // (channels // groups)
            place = group * len(taps) + t
            y = i * strides[0] - pads[0] + ky * dilations[0] + offsets[n, 2 * place, i, j]
            z = j * strides[1] - pads[1] + kx * dilations[1] + offsets[n, 2 * place + 1, i, j]
            weight = w[o, c, ky, kx] * (1 if mask is None else mask[n, place, i, j])
            made[n, o, i, j] += weight * sampled(x[n, first + c], y, z)
    return made


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("conv_groups", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_taps_are_taken_from_where_the_offsets_say(groups, conv_groups, masked):
    generator = np.random.default_rng(2)
    options = {"strides": (2, 1), "pads": (1, 2, 1, 0), "dilations": (1, 2)}
    x = generator.standard_normal((2, 4, 6, 7), dtype=np.float32)
    w = generator.standard_normal((4, 4 // conv_groups, 3, 2), dtype=np.float32)
    size = ((6 + 2 - 2 - 1) // 2 + 1, 7 + 2 - 2 - 1 + 1)
    offsets = 2 * generator.standard_normal((2, groups * 12, *size), dtype=np.float32)
    mask = generator.random((2, groups * 6, *size), np.float32) if masked else None
    inputs = {"x": x, "w": w, "offsets": offsets, "b": generator.standard_normal(4, dtype=np.float32)}
    inputs |= {"mask": mask} if masked else {}
    nodes = [helper.make_node("DeformConv", list(inputs), ["y"], offset_group=groups, group=conv_groups, **options)]
    data = onnx_bytes(nodes, {name: value.shape for name, value in inputs.items()}, opset=19)
    found = Session(optimise(load_bytes(data)), threads=2).run(inputs)["y"]
    expected = deformed(x, w, offsets, mask, groups, **options) + inputs["b"][:, None, None]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("operator", "shapes", "constants", "sentence"),
    [
        ("Col2Im", {"x": (1, 5, 4)}, {"i": np.array([4, 4]), "b": np.array([2, 2])}, "which do not fit"),
        ("Col2Im", {"x": (1, 4, 4)}, {"i": np.array([4, 4]), "b": np.array([2, 2])}, "has 4 blocks where"),
        ("Col2Im", {"x": (1, 4, 4)}, {"i": np.array([0, 4]), "b": np.array([2, 2])}, "which do not fit"),
        ("DeformConv", {"x": (1, 2, 5, 5), "w": (1, 2, 3, 3), "o": (1, 9, 3, 3)}, {}, "has offsets of the shape"),
        ("DeformConv", {"x": (1, 3, 5, 5), "w": (1, 2, 3, 3), "o": (1, 18, 3, 3)}, {}, "which do not fit"),
        (
            "DeformConv",
            {"x": (1, 2, 5, 5), "w": (1, 2, 3, 3), "o": (1, 18, 3, 3), "b": (2,)},
            {},
            "has a bias of shape",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(operator, shapes, constants, sentence):
    nodes = [helper.make_node(operator, [*shapes, *constants], ["y"], "n")]
    with pytest.raises(PowerlabError, match=f"{operator} node 'n' .*{sentence}"):
        load_bytes(onnx_bytes(nodes, shapes, constants=constants, opset=19))
