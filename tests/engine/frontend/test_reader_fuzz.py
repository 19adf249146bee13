"""Hostile files: whatever bytes come, the reader gives a graph or one sentence, in bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from engine_models import LIGHT, load_bytes, onnx_bytes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Graph
from powerlab.engine.passes import optimise

MAX_BYTES = 64 * 2**20


def _sample():
    """Return a model with every kind of field the reader knows, small enough to be mutated everywhere."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", strides=[2, 2], pads=[1, 1, 1, 1], group=1),
        helper.make_node("BatchNormalization", ["c", "s", "b", "b", "s"], ["n"], "norm", epsilon=1e-3),
        helper.make_node("Clip", ["n", "lo", "hi"], ["r"], "clip"),
        helper.make_node("Add", ["r", "r"], ["a"], "add"),
        helper.make_node("MaxPool", ["a"], ["p"], "pool", kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
        helper.make_node("Shape", ["p"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["batch"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["p", "target"], ["f"]),
        helper.make_node("Gemm", ["f", "g"], ["l"], "gemm", transB=1, alpha=0.5),
        helper.make_node("Softmax", ["l"], ["y"], "softmax", axis=1),
    ]
    vector = np.ones(2, np.float32)
    constants = {
        "w": np.ones((2, 1, 3, 3), np.float32),
        "b": vector,
        "s": vector,
        "lo": np.float32(0),
        "hi": np.float32(6),
        "zero": np.array([0]),
        "one": np.array([1]),
        "g": np.ones((3, 72), np.float16),
    }
    return onnx_bytes(nodes, {"x": (1, 1, 11, 11)}, constants=constants, opset=12)


SAMPLE = _sample()
OLD_SAMPLE = (LIGHT / "light_bvlc_alexnet.onnx").read_bytes()


def attempt(data):
    """Load and, if that works, optimise ``data``; anything but a graph or a PowerlabError is a failure."""
    tracemalloc.start()
    try:
        graph = load_bytes(data)
        assert isinstance(graph, Graph)
        if sum(info.elements for info in graph.tensors.values()) < 10**6:
            optimise(graph)
        sentence = ""
    except PowerlabError as error:
        sentence = str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < MAX_BYTES
    assert "\n" not in sentence
    assert len(sentence) < 1500


def test_the_samples_are_sound():
    assert len(optimise(load_bytes(SAMPLE)).nodes) == 6
    assert load_bytes(OLD_SAMPLE).outputs[0].shape == (1, 1000)


FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FUZZ
@given(data=st.data(), sample=st.sampled_from([SAMPLE, OLD_SAMPLE]))
def test_changed_bytes_give_a_graph_or_a_sentence(data, sample):
    changed = bytearray(sample)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(
            st.sampled_from([0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    attempt(bytes(changed))


@FUZZ
@given(data=st.data())
def test_cut_doubled_and_moved_pieces_give_a_graph_or_a_sentence(data):
    start, end, target = sorted(data.draw(st.tuples(*[st.integers(0, len(SAMPLE))] * 3)))
    piece = SAMPLE[start:end]
    attempt(
        data.draw(
            st.sampled_from(
                [
                    SAMPLE[:start],
                    SAMPLE[start:],
                    SAMPLE[:start] + SAMPLE[end:],
                    SAMPLE[:target] + piece + SAMPLE[target:],
                    SAMPLE[:start] + SAMPLE[end:target] + piece + SAMPLE[target:],
                ]
            )
        )
    )


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_sentence(data):
    with pytest.raises(PowerlabError):
        load_bytes(data)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_swapped_tensor_names_give_a_graph_or_a_sentence(data):
    """One-letter names stand in the file as length 1 and the letter: other wirings of the same nodes."""
    names = b"xwbcsnrapfgly"
    changed = bytearray(SAMPLE)
    places = [i for i in range(2, len(changed)) if changed[i - 1] == 1 and changed[i] in names]
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.sampled_from(places))] = data.draw(st.sampled_from(list(names)))
    attempt(bytes(changed))
