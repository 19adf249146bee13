"""Chains of convolutions: the same bits as the convolutions one after another, and as numpy has it."""

import hashlib
import math
from importlib import import_module

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine_native import numpy_reference
from engine_native.graphs import NO_CLAMP, GraphMaker, run_twice, use_tier
from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.ir.graph import convolutions_of
from powerlab.engine.ir.statistics import mac_count
from powerlab.engine.passes import PASSES, optimise
from powerlab.engine.passes.fuse.chains import fuse_chains
from powerlab.engine.target.machine import this_machine
from powerlab.engine.target.tiers import Tier, available_tiers

TIERS = [tier.name for tier in available_tiers()]
AVX512 = Tier("avx512", 16, 4, 6)


@pytest.fixture
def tails_always_join(monkeypatch):
    monkeypatch.setattr(import_module("powerlab.engine.passes.fuse.chains"), "tail_pays", lambda *_: True)


@st.composite
def chains(draw):
    from_image = draw(st.booleans())
    kernel = draw(st.sampled_from([(3, 3), (5, 5), (3, 5), (1, 1), (2, 3)]))
    dilations = draw(st.sampled_from([(1, 1), (1, 1), (2, 1)]))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return {
        "images": draw(st.integers(1, 3)),
        "inputs": draw(st.integers(1, 4) if from_image else st.integers(1, 40)),
        "hidden": draw(st.integers(2, 100)),
        "outputs": draw(st.integers(1, 70)),
        "size": (draw(st.integers(2 * reach[0], 20)), draw(st.integers(2 * reach[1], 24))),
        "head": {"strides": (2, 2), "pads": (1, 1, 1, 1)} if from_image else {},
        "depthwise": {
            "strides": draw(st.sampled_from([(1, 1), (2, 2), (1, 2), (3, 1)])),
            "pads": draw(st.sampled_from([(1, 1, 1, 1), (0, 1, 2, 0), (2, 2, 2, 2), (0, 0, 1, 1)])),
            "dilations": dilations,
        },
        "kernels": (3 if from_image else 1, kernel),
        "from_image": from_image,
        "clamps": [draw(st.sampled_from([NO_CLAMP, (0.0, np.inf), (0.0, 6.0), (-0.5, 0.25)])) for _ in range(3)],
        "tail": draw(st.booleans()),
        "residual": draw(st.booleans()),
        "threads": draw(st.integers(1, 4)),
        "seed": draw(st.integers(0, 2**32 - 1)),
    }


def build(case):
    """Return the graph of a case, its inputs, and what numpy makes of it."""
    random = np.random.default_rng(case["seed"])
    normal = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    maker, clamps, hidden = GraphMaker(), case["clamps"], case["hidden"]
    x = normal(case["images"], case["inputs"], *case["size"])
    arrays, source = {"x": x}, maker.input("x", *x.shape)
    if not case["from_image"]:
        source = maker.node("Clamp", (source,), x.shape, clamp=NO_CLAMP)
    side, kernel = case["kernels"]
    layers = [
        (normal(hidden, case["inputs"], side, side), {**case["head"], "clamp": clamps[0]}),
        (normal(hidden, 1, *kernel), {**case["depthwise"], "group": hidden, "clamp": clamps[1]}),
        (normal(case["outputs"], hidden, 1, 1) / math.sqrt(hidden), {"clamp": clamps[2]}),
    ]
    value, defaults = x, {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 1}
    for index, (weights, options) in enumerate(layers[: 3 if case["tail"] else 2]):
        bias, residual, name = normal(len(weights)), None, ""
        if index == 2 and case["residual"]:
            residual = normal(len(value), len(weights), *value.shape[2:])
            name, arrays["r"] = maker.input("r", *residual.shape), residual
        source = maker.conv(source, weights, bias, name, **options)
        value = numpy_reference.conv(value, weights, bias, residual, **{**defaults, **options})
    return maker.graph(source), arrays, value


@pytest.mark.parametrize("tier", TIERS)
@given(case=chains())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_chain_computes_the_bits_of_its_convolutions(tails_always_join, tier, case):
    graph, arrays, expected = build(case)
    chained = fuse_chains(graph)
    assert [node.op_type for node in chained.nodes if node.op_type != "Clamp"] == ["Chain"]
    (name,) = (info.name for info in graph.outputs)
    with use_tier(tier):
        found = run_twice(chained, case["threads"], **arrays)[name]
        apart = run_twice(graph, 1, **arrays)[name]
    np.testing.assert_array_equal(found, apart)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("hidden", "size", "threads", "split"),
    [(128, 7, 2, 2), (128, 7, 4, 2), (64, 40, 4, 1), (960, 7, 3, 3)],
)
def test_threads_share_channels_before_they_share_rows(maker, hidden, size, threads, split):
    x = maker.node("Clamp", (maker.input("x", 1, 16, size, size),), (1, 16, size, size), clamp=NO_CLAMP)
    y = maker.conv(x, np.ones((hidden, 16, 1, 1), np.float32))
    y = maker.conv(y, np.ones((hidden, 1, 3, 3), np.float32), group=hidden, pads=(1, 1, 1, 1))
    (step,) = (s for s in lower(fuse_chains(maker.graph(y)), AVX512, threads).steps if s.family == "conv_chain")
    assert step.settings["channel_split"] == split


@pytest.mark.parametrize(
    ("channels", "hidden", "size", "joins"), [(24, 144, 14, False), (24, 144, 56, True), (112, 672, 14, False)]
)
def test_the_tail_joins_where_what_lies_between_is_larger_than_the_weights(maker, channels, hidden, size, joins):
    shape = (1, channels, size, size)
    x = maker.node("Clamp", (maker.input("x", *shape),), shape, clamp=NO_CLAMP)
    y = maker.conv(x, np.ones((hidden, channels, 1, 1), np.float32))
    y = maker.conv(y, np.ones((hidden, 1, 3, 3), np.float32), group=hidden, pads=(1, 1, 1, 1))
    y = maker.conv(y, np.ones((channels, hidden, 1, 1), np.float32), residual=x)
    made = [node.op_type for node in fuse_chains(maker.graph(y)).nodes]
    assert made == (["Clamp", "Chain"] if joins else ["Clamp", "Chain", "FusedConv"])


def test_rows_between_two_convolutions_stay_in_the_cache(maker):
    x = maker.node("Clamp", (maker.input("x", 1, 16, 112, 112),), (1, 16, 112, 112), clamp=NO_CLAMP)
    y = maker.conv(x, np.ones((96, 16, 1, 1), np.float32))
    y = maker.conv(y, np.ones((96, 1, 3, 3), np.float32), group=96, pads=(1, 1, 1, 1), strides=(2, 2))
    (step,) = (s for s in lower(fuse_chains(maker.graph(y)), AVX512, 1).steps if s.family == "conv_chain")
    assert step.scratch.layout.image * 4 <= this_machine(AVX512, 1).caches.l2_bytes // 4
    assert step.settings["chunk_tiles"] < 56


def test_what_somebody_else_reads_stays(maker):
    x = maker.input("x", 1, 3, 8, 8)
    y = maker.conv(x, np.ones((16, 3, 1, 1), np.float32))
    z = maker.conv(y, np.ones((16, 1, 3, 3), np.float32), group=16)
    assert [node.op_type for node in fuse_chains(maker.graph(y, z)).nodes] == ["FusedConv", "FusedConv"]


@pytest.mark.parametrize("model", ["mobilenetv2", "mobilenetv3", "efficientnet-b0"])
def test_mobile_networks_count_as_before_and_give_the_same_bits(model):
    loaded = load_graph(f"{model}@64", batch_size=2)
    chained, plain = optimise(loaded), loaded
    for rewrite in PASSES:
        plain = plain if rewrite is fuse_chains else rewrite(plain)
    assert any(convolutions_of(node) for node in chained.nodes)
    assert mac_count(chained) == mac_count(plain) <= mac_count(loaded), "taps that meet only padding go"
    x = np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype(np.float32)
    answers = [
        Session(graph, threads=threads).run({"x": x})["y"].tobytes()
        for graph in (chained, plain)
        for threads in (1, 2, 3)
    ]
    assert len({hashlib.sha256(answer).digest() for answer in answers}) == 1


def test_work_of_a_chain_is_that_of_its_convolutions():
    session = Session("mobilenetv2", threads=1)
    flops = sum(work.flops for work in session.work if work.operator in ("Chain", "FusedConv", "FusedGemm"))
    assert flops == 2 * mac_count(load_graph("mobilenetv2"))
