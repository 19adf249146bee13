import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native import numpy_reference
from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice, use_tier
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.target.tiers import available_tiers, choose_tier

TIERS = [tier.name for tier in available_tiers()]
RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("sizes", "clamp"),
    [
        ((1, 2048, 1000), NO_CLAMP),
        ((3, 7, 5), (0.0, np.inf)),
        ((7, 90, 130), (0.0, np.inf)),
        ((8, 300, 33), NO_CLAMP),
        ((9, 300, 33), NO_CLAMP),
        ((1, 1, 1), NO_CLAMP),
    ],
)
def test_fully_connected(tier, maker, threads, sizes, clamp):
    batch, features, outputs = sizes
    x, weights, bias = normal(batch, features), normal(outputs, features), normal(outputs)
    inputs = (maker.input("x", batch, features), maker.constant(weights), maker.constant(bias))
    y = maker.node("FusedGemm", inputs, (batch, outputs), clamp=clamp)
    expected = np.clip(x.astype(np.float64) @ weights.T.astype(np.float64) + bias, *clamp)
    found = run_twice(maker.graph(y), threads, x=x)[y]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.sqrt(features) * 5)


@pytest.mark.parametrize(("images", "family"), [(1, "gemv"), (8, "gemv"), (9, "conv_direct")])
def test_the_kernel_of_a_fully_connected_layer_depends_on_the_number_of_images(tier, maker, images, family):
    inputs = (maker.input("x", images, 20), maker.constant(normal(40, 20)), "")
    session = Session(maker.graph(maker.node("FusedGemm", inputs, (images, 40), clamp=NO_CLAMP)))
    assert any(kernel.startswith(f"{family}_") for kernel, _ in session.steps())


@pytest.mark.parametrize(("images", "kernel"), [(1, "gemv"), (8, "gemv"), (9, "conv_direct")])
def test_a_convolution_of_one_pixel_is_a_fully_connected_layer(tier, maker, images, kernel):
    x, weights, bias = normal(images, 37, 1, 1), normal(50, 37, 1, 1), normal(50)
    first = maker.node("Clamp", (maker.input("x", *x.shape),), x.shape, clamp=(0.0, np.inf))
    graph = maker.graph(y := maker.conv(first, weights, bias, clamp=(0.0, np.inf)))
    found = [run_twice(graph, threads, x=x)[y] for threads in (1, 2, 3)]
    expected = np.maximum(np.maximum(x, 0)[:, :, 0, 0] @ weights[:, :, 0, 0].T + bias, 0)
    np.testing.assert_allclose(found[0][:, :, 0, 0], expected, rtol=1e-4, atol=1e-4)
    for result in found[1:]:
        np.testing.assert_array_equal(found[0], result)
    assert any(name.startswith(f"{kernel}_") for name, _ in Session(graph).steps())


@pytest.mark.parametrize("images", [1, 5, 8])
def test_fully_connected_layers_do_not_depend_on_the_number_of_threads(tier, maker, images):
    x = normal(images, 300)
    inputs = (maker.input("x", images, 300), maker.constant(normal(517, 300)), maker.constant(normal(517)))
    graph = maker.graph(maker.node("FusedGemm", inputs, (images, 517), clamp=NO_CLAMP))
    results = [run_twice(graph, threads, x=x)["t0"] for threads in (1, 2, 3, 7)]
    for result in results[1:]:
        np.testing.assert_array_equal(results[0], result)


def test_fully_connected_without_bias_behind_another(tier, maker):
    x, first, second = normal(2, 50), normal(37, 50), normal(10, 37)
    hidden = maker.node("FusedGemm", (maker.input("x", 2, 50), maker.constant(first), ""), (2, 37), clamp=NO_CLAMP)
    y = maker.node("FusedGemm", (hidden, maker.constant(second), ""), (2, 10), clamp=NO_CLAMP)
    found = run_twice(maker.graph(y), 2, x=x)[y]
    np.testing.assert_allclose(found, x @ first.T @ second.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("tier", TIERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_pools(tier, data):
    kernel = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    strides = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pads = tuple(data.draw(st.integers(0, kernel[i % 2] - 1)) for i in range(4))
    shape = (
        data.draw(st.integers(1, 2)),
        data.draw(st.integers(1, 35)),
        *(k + data.draw(st.integers(0, 9)) for k in kernel),
    )
    x = np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal(shape, dtype=np.float32)
    windows = {"kernel": kernel, "strides": strides, "pads": pads}
    most = numpy_reference.pool(x, np.max, -np.inf, **windows)
    sums = numpy_reference.pool(x, np.sum, 0, **windows)
    counts = numpy_reference.pool(np.ones_like(x), np.sum, 0, **windows)
    maker = GraphMaker()
    source = maker.input("x", *shape)
    outputs = [
        maker.node("MaxPool", (source,), most.shape, **windows),
        maker.node("AveragePool", (source,), most.shape, **windows, count_include_pad=False),
        maker.node("AveragePool", (source,), most.shape, **windows, count_include_pad=True),
        maker.node("GlobalAveragePool", (source,), (*shape[:2], 1, 1)),
    ]
    with use_tier(tier):
        found = run_twice(maker.graph(*outputs), 2, x=x)
    np.testing.assert_array_equal(found[outputs[0]], most.astype(np.float32))
    np.testing.assert_allclose(found[outputs[1]], sums / counts, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[outputs[2]], sums / (kernel[0] * kernel[1]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[outputs[3]], x.mean((2, 3), np.float64, keepdims=True), rtol=1e-5, atol=1e-6)


def test_max_pool_lets_not_a_number_through(tier, maker):
    x = normal(1, 4, 6, 6)
    x[0, 1, 2, 2] = np.nan
    windows = {"kernel": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0)}
    y = maker.node("MaxPool", (maker.input("x", *x.shape),), (1, 4, 3, 3), **windows)
    found = Session(maker.graph(y)).run({"x": x})[y]
    assert np.isnan(found[0, 1, 1, 1])
    assert np.isnan(found).sum() == 1


@pytest.mark.parametrize("shape", [(2, 19, 5, 7), (2, 37), (3,), (1, 5, 9)])
def test_elementwise_operators_on_any_rank(tier, maker, shape):
    x, y = normal(*shape), normal(*shape)
    total = maker.node("Add", (maker.input("x", *shape), maker.input("y", *shape)), shape, clamp=(-1.0, 1.0))
    clamped = maker.node("Clamp", ("x",), shape, clamp=(0.0, 0.5))
    found = run_twice(maker.graph(total, clamped), 2, x=x, y=y)
    np.testing.assert_allclose(found[total], np.clip(x + y, -1, 1), rtol=1e-6)
    np.testing.assert_array_equal(found[clamped], np.clip(x, 0, 0.5))


def test_add_takes_a_constant(tier, maker):
    x, bias = normal(2, 10), normal(2, 10)
    y = maker.node("Add", (maker.input("x", 2, 10), maker.constant(bias)), (2, 10), clamp=NO_CLAMP)
    np.testing.assert_allclose(run_twice(maker.graph(y), x=x)[y], x + bias, rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 19, 4, 4), (2, 21), (1, 6, 5)])
def test_scale_shift(tier, maker, shape):
    x, scale, shift = normal(*shape), normal(shape[1]), normal(shape[1])
    inputs = (maker.input("x", *shape), maker.constant(scale), maker.constant(shift))
    y = maker.node("ScaleShift", inputs, shape, clamp=(0.0, np.inf))
    along = (slice(None), *[None] * (len(shape) - 2))
    expected = np.maximum(x * scale[along] + shift[along], 0)
    np.testing.assert_allclose(run_twice(maker.graph(y), 2, x=x)[y], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("channels", "size", "beta"), [(3, 5, 0.75), (40, 5, 0.75), (33, 4, 0.5), (16, 9, 1.0)])
def test_lrn(tier, maker, channels, size, beta):
    x = normal(2, channels, 3, 4)
    options = {"size": size, "alpha": 0.1, "beta": beta, "bias": 2.0}
    # Behind a convolution, so that the channels that fill up the last block may hold anything.
    first = maker.conv(maker.input("x", *x.shape), np.eye(channels)[:, :, None, None], clamp=(-9.0, 9.0))
    y = maker.node("LRN", (first,), x.shape, **options)
    expected = numpy_reference.lrn(x, **options)
    np.testing.assert_allclose(run_twice(maker.graph(y), 2, x=x)[y], expected, rtol=1e-5, atol=1e-6)


def test_lrn_wider_than_the_kernel_reaches_is_refused(tier, maker):
    size = 2 * choose_tier().vector_width + 2
    y = maker.node("LRN", (maker.input("x", 1, 99, 2, 2),), (1, 99, 2, 2), size=size, alpha=1.0, beta=1.0, bias=1.0)
    with pytest.raises(PowerlabError, match=rf"'n0' normalises over {size} channels"):
        Session(maker.graph(y))


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 1000), 1), ((3, 5), 0), ((7,), 0), ((2, 3, 4, 5), 1), ((2, 3, 4, 5), -1), ((2, 3, 4, 5), 2)],
)
def test_softmax(tier, maker, shape, axis):
    x = normal(*shape) * 30
    y = maker.node("Softmax", (maker.input("x", *shape),), shape, axis=axis)
    expected = numpy_reference.softmax(x, axis)
    np.testing.assert_allclose(run_twice(maker.graph(y), 2, x=x)[y], expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ((2, 0, 3, 3), 1, (16, 32)),
        ((2, 0, 3, 3), 1, (5, 7, 16)),
        ((2, 3, 0, 2), 2, (1, 4)),
        ((0, 5), 0, (2, 1)),
        ((0,), 0, (3, 4)),
    ],
)
def test_concat(tier, maker, shape, axis, sizes):
    arrays = {f"x{i}": normal(*shape[:axis], size, *shape[axis + 1 :]) for i, size in enumerate(sizes)}
    expected = np.concatenate(list(arrays.values()), axis)
    parts = [maker.input(name, *array.shape) for name, array in arrays.items()]
    if len(shape) == 4:
        parts = [maker.node("Clamp", (part,), arrays[part].shape, clamp=NO_CLAMP) for part in parts]
    y = maker.node("Concat", tuple(parts), expected.shape, axis=axis)
    np.testing.assert_array_equal(run_twice(maker.graph(y), 2, **arrays)[y], expected)


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((2, 3, 4, 5), (2, 60)),
        ((2, 60), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (120,)),
        ((6, 5), (2, 15)),
        ((2, 15), (6, 5)),
        ((2, 32, 1, 1), (2, 32)),
        ((2, 33, 1, 1), (2, 33)),
        ((4, 3), (3, 4)),
    ],
)
def test_reshape(tier, maker, shape, target):
    x = normal(*shape)
    source = maker.node("Clamp", (maker.input("x", *shape),), shape, clamp=NO_CLAMP)
    y = maker.node("Reshape", (source,), target)
    z = maker.node("Clamp", (y,), target, clamp=(-0.5, 0.5))
    found = run_twice(maker.graph(y, z), 2, x=x)
    np.testing.assert_array_equal(found[y], x.reshape(target))
    np.testing.assert_array_equal(found[z], x.reshape(target).clip(-0.5, 0.5))


def test_an_unknown_operator_is_named_with_its_node(maker):
    y = maker.node("Fancy", (maker.input("x", 1, 2),), (1, 2))
    with pytest.raises(PowerlabError, match="Fancy node 'n0' cannot be run"):
        Session(maker.graph(y))


def test_an_input_may_be_an_output_and_two_outputs_one_tensor(tier, maker):
    x = normal(2, 5, 3, 3)
    y = maker.node("Clamp", (maker.input("x", *x.shape),), x.shape, clamp=(0.0, np.inf))
    found = run_twice(maker.graph("x", y), x=x)
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found[y], np.maximum(x, 0))
