import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_native import numpy_reference
from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice, use_tier
from powerlab.engine.target.tiers import available_tiers

TIERS = [tier.name for tier in available_tiers()]


@st.composite
def convolutions(draw):
    group = draw(st.sampled_from([1, 1, 1, 2, 3, 4, 8]))
    inputs, outputs = draw(st.integers(1, 40 // group)) * group, draw(st.integers(1, 70 // group)) * group
    if draw(st.booleans()) and group > 1:
        group = outputs = inputs  # depthwise
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilations = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 3)]))
    pads = draw(st.tuples(*[st.integers(0, 3)] * 4))
    smallest = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return {
        "x_shape": (
            draw(st.integers(1, 3)),
            inputs,
            draw(st.integers(smallest[0], smallest[0] + 12)),
            draw(st.integers(smallest[1], smallest[1] + 20)),
        ),
        "weights_shape": (outputs, inputs // group, *kernel),
        "options": {
            "strides": draw(st.sampled_from([(1, 1), (2, 2), (1, 2), (3, 1)])),
            "pads": pads,
            "dilations": dilations,
            "group": group,
            "clamp": draw(st.sampled_from([NO_CLAMP, (0.0, np.inf), (0.0, 6.0), (-0.5, 0.25)])),
        },
        "bias": draw(st.booleans()),
        "residual": draw(st.booleans()),
        "threads": draw(st.integers(1, 3)),
        "behind_a_step": draw(st.booleans()),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


def check(case):
    rng = np.random.default_rng(case["seed"])
    x = rng.standard_normal(case["x_shape"], dtype=np.float32)
    weights = rng.standard_normal(case["weights_shape"], dtype=np.float32)
    bias = rng.standard_normal(weights.shape[0], dtype=np.float32) if case["bias"] else None
    maker = GraphMaker()
    source = maker.input("x", *x.shape)
    if case["behind_a_step"]:  # then the convolution reads blocks, and not the input itself
        source = maker.node("Clamp", (source,), x.shape, clamp=NO_CLAMP)
    plain = maker.conv(source, weights, bias, **case["options"])
    arrays = {"x": x}
    residual = None
    if case["residual"]:
        shape = maker.tensors[plain].shape
        residual = rng.standard_normal(shape, dtype=np.float32)
        arrays["r"] = residual
        maker.nodes.pop()
        plain = maker.conv(source, weights, bias, maker.input("r", *shape), **case["options"])
    found = run_twice(maker.graph(plain), case["threads"], **arrays)[plain]
    expected = numpy_reference.conv(x, weights, bias, residual, **case["options"])
    # Rounding grows with the spread of the sums. F(4 x 4) may err by 1e-4 of it, everything else by a tenth of that.
    spread = np.sqrt(weights[0].size)
    kernel_is_3x3 = weights.shape[2:] == (3, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=(1e-4 if kernel_is_3x3 else 1e-5) * (spread + 1))


@pytest.mark.parametrize("tier", TIERS)
@given(case=convolutions())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_convolution_agrees_with_numpy(tier, case):
    with use_tier(tier):
        check(case)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("x_shape", "weights_shape", "stride", "pad"),
    [
        ((1, 3, 33, 31), (64, 3, 7, 7), 2, 3),
        ((2, 64, 14, 14), (96, 64, 1, 1), 1, 0),
        ((1, 160, 7, 7), (130, 160, 3, 3), 1, 1),
        ((1, 300, 5, 5), (64, 300, 1, 1), 1, 0),
        ((2, 70, 29, 27), (33, 70, 3, 3), 1, 1),
        ((1, 64, 15, 13), (64, 64, 3, 3), 1, 0),
    ],
    ids=["first", "pointwise", "several chunks", "many chunks", "3x3 with edges", "3x3 without padding"],
)
def test_shapes_real_networks_have(tier, x_shape, weights_shape, stride, pad):
    case = {
        "x_shape": x_shape,
        "weights_shape": weights_shape,
        "options": {
            "strides": (stride, stride),
            "pads": (pad,) * 4,
            "dilations": (1, 1),
            "group": 1,
            "clamp": (0.0, np.inf),
        },
        "bias": True,
        "residual": True,
        "threads": 2,
        "behind_a_step": False,
        "seed": 7,
    }
    with use_tier(tier):
        check(case)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(
    ("groups", "inputs", "outputs"), [(4, 56, 56), (5, 56, 56), (2, 20, 28), (4, 36, 20), (6, 24, 40), (3, 88, 72)]
)
def test_groups_that_end_within_a_block(tier, kernel, groups, inputs, outputs):
    """Some are joined to fill whole blocks; most outputs read only a part of what the joined ones have."""
    case = {
        "x_shape": (1, groups * inputs, 9, 11),
        "weights_shape": (groups * outputs, inputs, kernel, kernel),
        "options": {
            "strides": (kernel // 2 + 1,) * 2,
            "pads": (kernel // 2,) * 4,
            "dilations": (1, 1),
            "group": groups,
            "clamp": (0.0, np.inf),
        },
        "bias": True,
        "residual": groups % 2 == 0,
        "threads": 2,
        "behind_a_step": True,
        "seed": 11,
    }
    with use_tier(tier):
        check(case)


@pytest.mark.parametrize("shape", [(1, 96, 14, 14), (2, 32, 28, 28)])
def test_results_do_not_depend_on_the_number_of_threads(tier, shape):
    rng = np.random.default_rng(3)
    maker = GraphMaker()
    x = maker.input("x", *shape)
    y = maker.conv(x, rng.standard_normal((128, shape[1], 3, 3)), pads=(1, 1, 1, 1))
    y = maker.conv(y, rng.standard_normal((64, 128, 1, 1)), strides=(2, 2))
    graph, image = maker.graph(y), rng.standard_normal(shape, dtype=np.float32)
    results = [run_twice(graph, threads, x=image)[y] for threads in (1, 2, 3, 5)]
    for result in results[1:]:
        np.testing.assert_array_equal(results[0], result)
