"""A batch norm before a 1 x 1 convolution becomes part of it where it may, and computes what it did."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice
from engine_native.numpy_reference import conv
from powerlab.engine.codegen import lower
from powerlab.engine.target.tiers import Tier

AVX2, AVX512 = Tier("avx2", 8, 2, 6), Tier("avx512", 16, 4, 6)
RELU = (0.0, math.inf)
PLAIN = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1}


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(math.prod(shape)).standard_normal(shape, dtype=np.float32)


def scaled(maker: GraphMaker, x: str, scale: np.ndarray, shift: np.ndarray, clamp=RELU, **attributes) -> str:
    inputs = (x, maker.constant(scale), maker.constant(shift))
    return maker.node("ScaleShift", inputs, maker.tensors[x].shape, clamp=clamp, **attributes)


def families(maker: GraphMaker, *outputs: str, tier: Tier = AVX512) -> list[str]:
    return [step.family for step in lower(maker.graph(*outputs), tier, 2).steps[1:]]


def plain(maker: GraphMaker, channels: int = 32) -> str:
    x = maker.input("x", 1, channels, 5, 6)
    return scaled(maker, x, np.ones(channels), np.zeros(channels))


@pytest.mark.parametrize("tier", [AVX2, AVX512], ids=lambda tier: tier.name)
def test_it_is_one_step(maker, tier):
    y = maker.conv(plain(maker), np.ones((16, 32, 1, 1)))
    assert families(maker, y, tier=tier) == ["conv_preactivated", "reorder_to_planes"]


def test_the_step_stands_for_the_convolution(maker):
    y = maker.conv(plain(maker), np.ones((16, 32, 1, 1)), residual=maker.input("r", 1, 16, 5, 6), clamp=RELU)
    program = lower(maker.graph(y), AVX512, 2)
    (step,) = [step for step in program.steps if step.family == "conv_preactivated"]
    assert step.label == "n1"
    assert step.choice.algorithm == "preactivated"
    assert step.y is not None
    assert (step.x.layout.c, step.out.layout.c) == (32, 16)


@pytest.mark.parametrize(
    "window", [{"pads": (1, 1, 1, 1)}, {"strides": (2, 2)}, {"group": 2}], ids=["padded", "strided", "grouped"]
)
def test_it_stays_a_step_before_other_convolutions(maker, window):
    weights = np.ones((32, 32 // window.get("group", 1), 1, 1))
    assert "scale_shift" in families(maker, maker.conv(plain(maker), weights, **window))


def test_it_stays_a_step_before_larger_kernels(maker):
    assert "scale_shift" in families(maker, maker.conv(plain(maker), np.ones((16, 32, 3, 3))))


def test_it_stays_a_step_where_others_read_it(maker):
    y = plain(maker)
    z = maker.conv(y, np.ones((16, 32, 1, 1)))
    assert "scale_shift" in families(maker, z, y)
    other = maker.conv(y, np.ones((8, 32, 1, 1)))
    assert "scale_shift" in families(maker, z, other)


def test_it_stays_a_step_where_the_convolution_also_adds_it(maker):
    y = plain(maker)
    assert "scale_shift" in families(maker, maker.conv(y, np.ones((32, 32, 1, 1)), residual=y))


def test_a_residual_that_is_scaled_is_no_input(maker):
    y = plain(maker)
    x = maker.input("other", 1, 16, 5, 6)
    assert "scale_shift" in families(maker, maker.conv(x, np.ones((32, 16, 1, 1)), residual=y))


@settings(deadline=None, max_examples=100)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 90), st.integers(1, 12), st.integers(1, 12)),
    outputs=st.integers(1, 150),
    clamp=st.sampled_from([RELU, NO_CLAMP, (-0.5, 0.5)]),
    slope=st.sampled_from([1.0, 0.25]),
    before=st.booleans(),
    behind=st.booleans(),
    residual=st.booleans(),
)
def test_any_of_them_computes_norm_and_convolution(*, shape, outputs, clamp, slope, before, behind, residual):
    maker, channels = GraphMaker(), shape[1]
    x, weights, bias = normal(*shape), normal(outputs, channels, 1, 1) / math.sqrt(channels), normal(outputs)
    scale, shift, added = normal(channels), normal(channels + 1)[1:], normal(shape[0], outputs, *shape[2:])
    arrays, source = {"x": x}, maker.input("x", *shape)
    if before:  # what is read has a halo of its own
        maker.conv(source, np.ones((1, channels, 3, 3)), pads=(1, 1, 1, 1))
    y = scaled(maker, source, scale, shift, clamp, slope=slope)
    if residual:
        arrays["r"] = added
    y = maker.conv(y, weights, bias, maker.input("r", *added.shape) if residual else "")
    if behind:  # what is written has one
        maker.conv(y, np.ones((1, outputs, 3, 3)), pads=(1, 1, 1, 1))
    changed = x.astype(np.float64) * scale[:, None, None] + shift[:, None, None]
    changed = np.clip(np.where(changed < 0, slope * changed, changed), *clamp)
    expected = conv(changed, weights, bias, added if residual else None, clamp=NO_CLAMP, **PLAIN)
    alone, *others = (run_twice(maker.graph(y), threads, **arrays)[y] for threads in (1, 2, 3))
    assert np.abs(alone - expected).max() <= 1e-5 * (np.abs(expected).max() + 1)
    assert all(np.array_equal(alone, other) for other in others)


def test_not_a_number_shows(maker):
    x = normal(1, 16, 3, 3)
    x[0, 3, 1, 1] = np.nan
    y = scaled(maker, maker.input("x", *x.shape), np.ones(16), np.zeros(16))
    y = maker.conv(y, np.ones((16, 16, 1, 1)))
    assert np.isnan(run_twice_with_nan(maker, y, x)[0, :, 1, 1]).all()


def run_twice_with_nan(maker: GraphMaker, y: str, x: np.ndarray) -> np.ndarray:
    found = run_twice(maker.graph(y), 2, x=x)[y]
    assert np.isnan(found).sum() == found.shape[1]
    return found
