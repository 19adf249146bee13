"""Layers in 16-bit floats: near float32, the same bits on any number of threads, refused where nothing has them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from engine_models import onnx_bytes
from msgspec.structs import replace
from onnx import helper

from powerlab.backends.base import LoadOptions
from powerlab.backends.builtin import load
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import BF16, FP16, choose_tier
from requires import needs_instructions

PRECISIONS = [
    pytest.param(BF16, marks=needs_instructions(bool(choose_tier().pairs), "bfloat16")),
    pytest.param(FP16, marks=needs_instructions(bool(choose_tier().halves), "arithmetic in float16")),
]


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def conv(x, out, inputs, outputs, constants, *, kernel=1, group=1, activation="Relu", added="", stride=1):
    """Return the nodes of a convolution, what is added to it, and its activation."""
    constants[f"{out}.w"] = normal(len(constants), outputs, inputs // group, kernel, kernel) / np.float32(
        np.sqrt(kernel * kernel * inputs / group)
    )
    constants[f"{out}.b"] = normal(len(constants), outputs)
    pads, last = [kernel // 2] * 4, f"{out}.conv" if activation or added else out
    nodes = [
        helper.make_node("Conv", [x, f"{out}.w", f"{out}.b"], [last], pads=pads, group=group, strides=[stride] * 2)
    ]
    if added:
        nodes.append(helper.make_node("Add", [last, added], [f"{out}.sum" if activation else out]))
        last = f"{out}.sum"
    if activation:
        nodes.append(helper.make_node(activation, [last], [out]))
    return nodes


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Return the path of convolutions of many forms: residuals, groups, odd channels, functions, a linear layer."""
    constants = {}
    nodes = [
        *conv("x", "a", 24, 96, constants),
        *conv("a", "b", 96, 96, constants, kernel=3, group=3, activation="Sigmoid"),
        *conv("b", "c", 96, 96, constants, added="a"),
        *conv("c", "d", 96, 83, constants, kernel=5, stride=2),
        *conv("d", "e", 83, 83, constants, added="d", activation=""),
        *conv("e", "f", 83, 64, constants),
        helper.make_node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["g", "rows"], ["h"]),
        helper.make_node("MatMul", ["h", "matrix"], ["i"]),
        helper.make_node("Gelu", ["i"], ["y"]),
    ]
    constants |= {"rows": np.array([-1, 40]), "matrix": normal(99, 40, 33) / 7}
    path = tmp_path_factory.mktemp("bf16") / "network.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (2, 24, 18, 22)}, constants=constants, opset=20))
    return path


def sqnr_db(exact, found):
    exact = exact.astype(np.float64)
    return 10 * np.log10(np.square(exact).sum() / np.square(exact - found).sum())


def check_answers(path, x, one, others):
    """Check that all sessions make the same bits, whatever lay in their memory, and that these are near float32's."""
    found = one.run(x)["y"]
    assert 35 < sqnr_db(Session(path).run(x)["y"], found) < 80
    one.poison()
    for session in (one, *others):
        np.testing.assert_array_equal(session.run(x)["y"], found)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_network_in_16_bits_is_near_the_one_in_floats(network, precision):
    x = {"x": normal(1, 2, 24, 18, 22)}
    exact, session = Session(network, threads=1).run(x)["y"], Session(network, threads=1, precision=precision)
    kernels = {kernel for kernel, _ in session.steps()}
    assert any(kernel.startswith(f"conv_direct_{precision}_f32_") for kernel in kernels)
    found = session.run(x)["y"]
    assert 35 < sqnr_db(exact, found) < 80
    session.poison()
    np.testing.assert_array_equal(session.run(x)["y"], found)
    for threads in (2, 3):
        np.testing.assert_array_equal(Session(network, threads=threads, precision=precision).run(x)["y"], found)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_depthwise_convolutions_read_and_write_16_bits_between_layers_that_do(precision, tmp_path):
    constants = {}
    nodes = [
        *conv("x", "a", 24, 83, constants, activation="HardSwish"),
        *conv("a", "b", 83, 83, constants, kernel=3, group=83),
        *conv("b", "c", 83, 83, constants, kernel=5, group=83, stride=2),
        *conv("c", "d", 83, 48, constants),
        helper.make_node("AveragePool", ["d"], ["e"], kernel_shape=[2, 2], strides=[1, 1]),
        *conv("e", "f", 48, 48, constants, kernel=7, group=48),
        *conv("f", "g", 48, 48, constants),
        *conv("g", "h", 48, 48, constants, kernel=3, group=48, added="g"),
        *conv("h", "y", 48, 8, constants, activation=""),
    ]
    (tmp_path / "network.onnx").write_bytes(onnx_bytes(nodes, {"x": (2, 24, 21, 30)}, constants=constants, opset=20))
    x = {"x": normal(1, 2, 24, 21, 30)}
    one, *others = (Session(tmp_path / "network.onnx", threads=n, precision=precision) for n in (1, 2, 3))
    kernels = [kernel.partition("_avx")[0].partition("_neon")[0] for kernel, _ in one.steps()]
    depthwise = [kernel.removeprefix("conv_depthwise_") for kernel in kernels if "depthwise" in kernel]
    assert depthwise == [precision, precision, f"to_{precision}", "f32"]
    check_answers(tmp_path / "network.onnx", x, one, others)


@pytest.mark.parametrize(
    ("channels", "kernel", "stride"), [(3, 7, 2), (3, 3, 1), (1, 5, 1), (2, 3, 1), (4, 3, 3), (3, 4, 4), (1, 1, 2)]
)
@needs_instructions(bool(choose_tier().pairs), "bfloat16")
def test_a_first_layer_in_bfloat16_reads_an_image_of_few_channels(channels, kernel, stride, tmp_path):
    constants, size = {}, (2, channels, 19, 26)
    nodes = [
        *conv("x", "a", channels, 83, constants, kernel=kernel, stride=stride),
        *conv("a", "y", 83, 40, constants, activation=""),
    ]
    (tmp_path / "network.onnx").write_bytes(onnx_bytes(nodes, {"x": size}, constants=constants, opset=20))
    one, *others = (Session(tmp_path / "network.onnx", threads=n, precision=BF16) for n in (1, 2, 3))
    kernels = [kernel for kernel, _ in one.steps()]
    if not replace(choose_tier(), precision=BF16).multiplies_matrices:  # for which small kernels are faster in floats
        assert kernels[0].startswith("narrow_image_bf16_")
        assert kernels[1].startswith("conv_direct_bf16_")
    check_answers(tmp_path / "network.onnx", {"x": normal(3, *size)}, one, others)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_maxima_between_convolutions_stay_in_16_bits(precision, tmp_path):
    constants = {}
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes = [
        *conv("x", "a", 40, 83, constants),
        helper.make_node("MaxPool", ["a"], ["b"], **pool),
        *conv("b", "c", 83, 40, constants),
        helper.make_node("MaxPool", ["c"], ["d"], **pool),
        *conv("d", "e", 40, 24, constants, activation=""),
        helper.make_node("ReduceMean", ["d"], ["means"], axes=[1], keepdims=1),
        helper.make_node("Mul", ["e", "means"], ["y"]),
    ]
    (tmp_path / "network.onnx").write_bytes(onnx_bytes(nodes, {"x": (2, 40, 31, 45)}, constants=constants, opset=13))
    x = {"x": normal(3, 2, 40, 31, 45)}
    one, *others = (Session(tmp_path / "network.onnx", threads=n, precision=precision) for n in (1, 2, 3))
    pools = [kernel.split("_")[2] for kernel, _ in one.steps() if kernel.startswith("pool_max")]
    assert pools == [precision, "f32"]  # the second one's floats are read, too
    check_answers(tmp_path / "network.onnx", x, one, others)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("hidden", [75, 128])
def test_rows_between_linear_layers_are_rounded_once_and_sums_are_taken_in(precision, hidden, tmp_path):
    constants = {
        "w0": normal(1, 64, hidden) / np.float32(8),
        "b0": normal(2, hidden),
        "w1": normal(3, hidden, 64) / np.float32(8),
        "w2": normal(4, 64, 24) / np.float32(8),
        "w3": normal(5, 64, 24) / np.float32(8),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h0"]),
        helper.make_node("Add", ["h0", "b0"], ["h1"]),
        helper.make_node("Gelu", ["h1"], ["h2"]),
        helper.make_node("MatMul", ["h2", "w1"], ["h3"]),
        helper.make_node("Add", ["x", "h3"], ["h4"]),
        helper.make_node("MatMul", ["h4", "w2"], ["h5"]),
        helper.make_node("MatMul", ["h4", "w3"], ["h6"]),
        helper.make_node("Mul", ["h5", "h6"], ["y"]),
    ]
    (tmp_path / "network.onnx").write_bytes(onnx_bytes(nodes, {"x": (2, 21, 64)}, constants=constants, opset=20))
    x = {"x": normal(6, 2, 21, 64)}
    one, *others = (Session(tmp_path / "network.onnx", threads=n, precision=precision) for n in (1, 2, 3))
    kernels = [kernel for kernel, _ in one.steps()]
    made = ["words" if f"{precision}_f32" not in kernel else "floats" for kernel in kernels if "conv_direct" in kernel]
    assert made == ["words", "floats", "floats", "floats"]
    assert sum(kernel.startswith("narrow_rows") for kernel in kernels) == 2, (
        "the input, and the sum that two layers read"
    )
    assert not any(kernel.startswith("add") for kernel in kernels)
    check_answers(tmp_path / "network.onnx", x, one, others)


@pytest.mark.parametrize("precision", ["fp32", *PRECISIONS])
def test_a_thousand_depthwise_convolutions_follow_on_each_other(precision, tmp_path):
    names = ["x", *(f"t{number}" for number in range(1000)), "y"]
    nodes = [helper.make_node("Conv", [a, "w"], [b], group=16) for a, b in itertools.pairwise(names)]
    nodes[-1] = helper.make_node("Conv", [names[-2], "dense"], ["y"])
    constants = {"w": np.full((16, 1, 1, 1), -1, np.float32), "dense": np.ones((3, 16, 1, 1), np.float32)}
    (tmp_path / "network.onnx").write_bytes(onnx_bytes(nodes, {"x": (1, 16, 2, 2)}, constants=constants, opset=20))
    session = Session(tmp_path / "network.onnx", threads=1, precision=precision)
    np.testing.assert_array_equal(session.run({"x": np.ones((1, 16, 2, 2), np.float32)})["y"], 16)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("model", ["resnet18", "vit-tiny", "lstm2"])
def test_networks_of_the_zoo(model, precision):
    sessions = [Session(model, threads=2, batch_size=1, precision=one) for one in ("fp32", precision)]
    inputs = {name: normal(3, *shape) for name, shape in sessions[0].inputs.items()}
    exact, found = (next(iter(session.run(inputs).values())) for session in sessions)
    assert sqnr_db(exact, found) > 30
    assert any(precision in kernel for kernel, _ in sessions[1].steps())


@pytest.mark.parametrize(("precision", "numbers"), [(BF16, "bfloat16"), (FP16, "arithmetic in float16")])
def test_a_processor_without_it_gets_a_sentence(precision, numbers, network, monkeypatch):
    here = choose_tier()
    monkeypatch.setattr("powerlab.engine.target.tiers.choose_tier", lambda: replace(here, pairs="", halves=""))
    with pytest.raises(
        PowerlabError, match=f"tier {here.name} has no instructions for {numbers} on this processor; use fp32"
    ):
        Session(network, precision=precision)


def test_the_precisions_that_are_offered_are_those_of_the_processor(network, monkeypatch):
    here = choose_tier()
    monkeypatch.setattr("powerlab.backends.builtin.choose_tier", lambda: replace(here, pairs="", halves="neon_fp16"))
    with pytest.raises(PowerlabError, match=r"^the engine builtin computes in fp32 or fp16 or int8 or int8w or"):
        load(LoadOptions(model=str(network), batch_size=1, threads=1, precision="int3"))


def test_steps_in_float16_are_planned_for_a_processor_that_has_it(network):
    """Which kernels there would be; the native core has them on such processors alone."""
    tier = replace(choose_tier(), halves="any", half_tile_blocks=4, half_tile_pixels=8, half_block=16, precision=FP16)
    graph = optimise(load_graph(network), for_cores=False)
    kernels = [step.family for step in lower(graph, tier, threads=2).steps]
    assert kernels.count("conv_direct_fp16") >= 3
    assert {"narrow_blocks_fp16", "narrow_rows_fp16", "conv_direct_fp16_f32"} <= set(kernels)
    assert not any("bf16" in kernel for kernel in kernels)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_pads_by_own_pixels_and_norms_between_layers_are_one_step_each(precision, tmp_path):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("InstanceNormalization", ["c", "scale", "shift"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Pad", ["r", "around"], ["p"], mode="reflect"),
        helper.make_node("Conv", ["p", "v"], ["y"]),
    ]
    constants = {
        "w": normal(0, 64, 64, 1, 1) / np.float32(8),
        "v": normal(1, 64, 64, 3, 3) / np.float32(24),
        "scale": np.abs(normal(2, 64)) + np.float32(0.5),
        "shift": normal(3, 64),
        "around": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
    }
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": (1, 64, 20, 21)}, constants=constants))
    inputs = {"x": normal(4, 1, 64, 20, 21)}
    session, exact = Session(path, threads=2, precision=precision), Session(path, threads=2).run(inputs)["y"]
    kernels = [kernel for kernel, _ in session.steps()]
    assert sum(kernel.startswith("pad_reflect") for kernel in kernels) == 1
    assert not any(kernel.startswith(("copy", "clamp")) for kernel in kernels)
    assert np.abs(session.run(inputs)["y"] - exact).max() <= 0.02 * np.abs(exact).max()
