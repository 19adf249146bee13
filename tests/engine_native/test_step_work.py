"""What a step has to do, counted for networks of chance against counting by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_native.graphs import GraphMaker
from powerlab.engine import Session
from powerlab.engine.target import ceilings
from powerlab.engine.target.ceilings import Ceilings

SIDE = st.integers(4, 12)


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(1, 3),
    inputs=st.integers(1, 20),
    outputs=st.integers(1, 20),
    side=SIDE,
    kernel=st.sampled_from([1, 3]),
    stride=st.sampled_from([1, 2]),
    threads=st.sampled_from([1, 2]),
)
def test_a_convolution_of_chance(*, batch, inputs, outputs, side, kernel, stride, threads):
    pad = kernel // 2
    maker = GraphMaker()
    x = maker.input("x", batch, inputs, side, side)
    y = maker.conv(x, np.ones((outputs, inputs, kernel, kernel)), strides=(stride, stride), pads=(pad,) * 4)
    session = Session(maker.graph(y), threads=threads)
    (conv,) = [work for work in session.work if work.operator == "FusedConv"]
    out_side = math.ceil(side / stride)
    assert conv.shape == (batch, outputs, out_side, out_side)
    assert conv.flops == 2 * batch * outputs * out_side**2 * inputs * kernel**2
    reached = min(side, out_side * kernel)
    moved = batch * inputs * reached**2 + outputs * inputs * kernel**2 + batch * outputs * out_side**2
    assert conv.bytes_moved == 4 * moved


@pytest.mark.parametrize("batch", [1, 4])
def test_work_grows_with_the_batch_and_weights_do_not(batch):
    def conv_of(size):
        maker = GraphMaker()
        y = maker.conv(maker.input("x", size, 16, 8, 8), np.ones((16, 16, 3, 3)), pads=(1, 1, 1, 1))
        return next(work for work in Session(maker.graph(y), threads=1).work if work.operator)

    one, many = conv_of(1), conv_of(batch)
    weights = 4 * 16 * 16 * 9
    assert many.flops == batch * one.flops
    assert many.bytes_moved - weights == batch * (one.bytes_moved - weights)


def test_two_nodes_of_one_name_are_told_apart():
    maker = GraphMaker()
    x = maker.input("x", 1, 16, 8, 8)
    y = maker.conv(x, np.ones((16, 16, 3, 3)), pads=(1, 1, 1, 1))
    z = maker.conv(y, np.ones((32, 16, 1, 1)))
    graph = maker.graph(z)
    twins = [type(node)(node.op_type, "twin", node.inputs, node.outputs, node.attributes) for node in graph.nodes]
    session = Session(graph.rewritten(twins), threads=1)
    shapes = [work.shape for work in session.work if work.operator == "FusedConv"]
    assert shapes == [(1, 16, 8, 8), (1, 32, 8, 8)]


def test_arrays_are_larger_than_any_cache_and_not_without_end(monkeypatch, tmp_path):
    monkeypatch.setattr(ceilings, "_CACHES", tmp_path)
    sizes = {}
    for name, text in {"none": None, "small": "48K", "usual": "32M", "huge": "384M"}.items():
        if text is not None:
            (tmp_path / "index3").mkdir(exist_ok=True)
            (tmp_path / "index3" / "size").write_text(f"{text}\n")
        sizes[name] = ceilings._array_bytes()
    assert sizes == {"none": 32 << 20, "small": 32 << 20, "usual": 128 << 20, "huge": 256 << 20}


def test_the_best_attempt_counts(monkeypatch):
    took_ns = iter([900, 300, 700])

    class Plan:
        def repeat(self, *_):
            return next(took_ns)

    moments = iter([0, 0, 0, 10**12])
    monkeypatch.setattr(ceilings, "time", SimpleNamespace(monotonic_ns=lambda: next(moments)))
    assert ceilings._least_ns(Plan()) == 300


def test_ceilings_of_more_threads_are_asked_of_more_threads(monkeypatch):
    asked = []

    class Plan:
        def __init__(self, threads):
            asked.append(threads)

        def repeat(self, *_):
            return 1_000_000

    monkeypatch.setattr(ceilings, "build_plan", lambda program, tier, pool: Plan(pool.threads))
    monkeypatch.setattr(ceilings, "_SEARCH_NS", 0)
    one, two = ceilings.measure_ceilings(1), ceilings.measure_ceilings(2)
    assert asked == [1, 1, 2, 2]
    assert two.peak_gflops == pytest.approx(2 * one.peak_gflops)
    assert isinstance(one, Ceilings)
    assert one.memory_gb_per_s == pytest.approx(two.memory_gb_per_s, rel=0.01)
