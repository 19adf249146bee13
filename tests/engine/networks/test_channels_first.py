"""Layers over the last axis, between transpositions that bring channels there and back, run where the channels lie."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes, relative_error, run_ort
from onnx import helper

from powerlab.engine import Session
from powerlab.engine.codegen import lower
from powerlab.engine.passes import optimise
from powerlab.engine.target.tiers import choose_tier

RANDOM = np.random.default_rng(11)
TOLERANCE = 1e-5
LAST, FIRST = {3: [0, 2, 1], 4: [0, 2, 3, 1]}, {3: [0, 2, 1], 4: [0, 3, 1, 2]}


def normal(*shape):
    return RANDOM.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[0]).astype(np.float32)


def step(operator, inputs, output, **attributes):
    return helper.make_node(operator, inputs, [output], output, **attributes)


def layers(source, output):
    """A feed-forward block, from 20 channels to 52 and back, with what usually stands around it."""
    return [
        step("LayerNormalization", [source, "scale", "shift"], f"{output}.n", axis=-1, epsilon=1e-6),
        step("MatMul", [f"{output}.n", "wide"], f"{output}.w"),
        step("Add", ["bias", f"{output}.w"], f"{output}.b"),
        step("Gelu", [f"{output}.b"], f"{output}.g"),
        step("MatMul", [f"{output}.g", "narrow"], f"{output}.m"),
        step("Mul", [f"{output}.m", "gamma"], output),
    ]


def constants():
    return {
        "scale": np.abs(normal(20)) + 0.5,
        "shift": normal(20),
        "wide": normal(20, 52),
        "bias": normal(52),
        "narrow": normal(52, 20),
        "gamma": normal(20),
        "c": normal(20, 20, *(1, 1)),
    }


def families(graph):
    return [one.family for one in lower(graph, choose_tier(), 2).steps]


def check(nodes, shape, outputs, extra=None):
    data = onnx_bytes(nodes, {"x": shape}, outputs, constants={**constants(), **(extra or {})}, opset=20)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal(shape, dtype=np.float32)}
    found = [Session(graph, threads=threads).run(x) for threads in (1, 3)]
    assert relative_error(found[0], run_ort(data, x)) < TOLERANCE
    assert all(found[0][name].tobytes() == found[1][name].tobytes() for name in outputs)
    return graph


@pytest.mark.parametrize("size", [(1, 1), (5, 9), (8, 16), (3, 33)])
def test_a_block_between_two_transpositions_needs_neither(size):
    nodes = [
        step("Conv", ["x", "c"], "i"),
        step("Transpose", ["i"], "l", perm=LAST[4]),
        *layers("l", "m"),
        step("Transpose", ["m"], "f", perm=FIRST[4]),
        step("Add", ["f", "i"], "y"),
    ]
    graph = check(nodes, (2, 20, *size), ["y"])
    assert {node.op_type for node in graph.nodes} <= {"FusedConv", "ChannelNorm", "Add"}
    assert "channel_layer_norm" in families(graph)


def test_pixels_in_a_row_are_no_different():
    nodes = [
        step("Transpose", ["x"], "l", perm=LAST[3]),
        *layers("l", "m"),
        step("Transpose", ["m"], "y", perm=FIRST[3]),
    ]
    graph = check(nodes, (2, 20, 37), ["y"])
    assert "Transpose" not in {node.op_type for node in graph.nodes}


def test_what_somebody_else_reads_stays_where_it_is():
    nodes = [
        step("Transpose", ["x"], "l", perm=LAST[4]),
        *layers("l", "m"),
        step("Transpose", ["m"], "y", perm=FIRST[4]),
    ]
    check(nodes, (1, 20, 4, 6), ["y", "m.g", "l"])
    check(nodes, (1, 20, 4, 6), ["y", "m"])


def test_a_wide_tensor_is_not_moved_where_a_narrow_one_does():
    """A feed-forward block with a depthwise convolution in its middle, as in PVT v2 and SegFormer."""
    nodes = [
        step("LayerNormalization", ["x", "scale", "shift"], "n", axis=-1),
        step("MatMul", ["n", "wide"], "w"),
        step("Add", ["w", "bias"], "b"),
        step("Transpose", ["b"], "t", perm=FIRST[3]),
        step("Reshape", ["t", "image"], "i"),
        step("Conv", ["i", "depthwise"], "d", group=52, pads=[1] * 4),
        step("Reshape", ["d", "row"], "r"),
        step("Transpose", ["r"], "l", perm=LAST[3]),
        step("Gelu", ["l"], "g"),
        step("MatMul", ["g", "narrow"], "m"),
        step("Add", ["m", "x"], "y"),
    ]
    extra = {
        "image": np.array([2, 52, 6, 7]),
        "row": np.array([2, 52, 42]),
        "depthwise": normal(52, 1, 3, 3),
    }
    graph = check(nodes, (2, 42, 20), ["y"], extra)
    moved = [graph.shape(node.outputs[0]) for node in graph.nodes if node.op_type == "Transpose"]
    assert all(20 in shape for shape in moved)
    assert not {"reorder_to_planes"} & set(families(graph))


@pytest.mark.parametrize("channels", [1, 5, 16, 40])
@pytest.mark.parametrize("operator", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("scaled", [True, False])
def test_channels_are_normalised_in_blocks(operator, channels, scaled):
    extra = {"s": np.abs(normal(channels)) + 0.5 if scaled else np.ones(channels, np.float32), "h": normal(channels)}
    extra["k"] = normal(channels, 3, 1, 1)
    inputs = ["l", "s", "h"] if scaled and operator == "LayerNormalization" else ["l", "s"]
    nodes = [
        step("Conv", ["x", "k"], "i"),
        step("Transpose", ["i"], "l", perm=LAST[4]),
        step(operator, inputs, "n", axis=-1, epsilon=1e-3),
        step("Transpose", ["n"], "y", perm=FIRST[4]),
    ]
    data = onnx_bytes(nodes, {"x": (2, 3, 5, 11)}, ["y"], constants=extra, opset=23)
    graph, x = optimise(load_bytes(data)), {"x": RANDOM.standard_normal((2, 3, 5, 11), dtype=np.float32)}
    assert any(family.startswith("channel_") for family in families(graph))
    i = np.einsum("nchw,oc->nohw", x["x"], extra["k"][:, :, 0, 0])
    centred = i - i.mean(1, keepdims=True) if operator == "LayerNormalization" else i
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-3) * extra["s"][:, None, None]
    if len(inputs) == 3:
        expected = expected + extra["h"][:, None, None]
    for threads in (1, 2):
        assert relative_error(Session(graph, threads=threads).run(x), {"y": expected.astype(np.float32)}) < 1e-4


def test_a_transposition_between_two_chains_goes_to_the_longer_one():
    """As in an MLP-Mixer: with three axes, what ends one chain begins the next, over the other axis."""
    nodes = [
        step("Transpose", ["x"], "l", perm=LAST[3]),
        step("LayerNormalization", ["l", "tokens", "shifts"], "n", axis=-1, epsilon=1e-6),
        step("Transpose", ["n"], "t", perm=LAST[3]),
        *layers("t", "m"),
        step("Transpose", ["m"], "f", perm=FIRST[3]),
        step("Add", ["f", "l"], "y"),
    ]
    graph = check(nodes, (2, 7, 20), ["y"], {"tokens": normal(7), "shifts": normal(7)})
    assert "FusedConv" in {node.op_type for node in graph.nodes}


def test_channels_put_first_and_last_again_are_where_they_were():
    """As in DPT, which folds the pixels of an image into rows between two transpositions."""
    nodes = [
        step("Transpose", ["a"], "t", perm=FIRST[4]),
        step("Reshape", ["t", "rows"], "r"),
        step("Transpose", ["r"], "y", perm=LAST[3]),
        step("MatMul", ["y", "wide"], "z"),
    ]
    extra = {"rows": np.array([2, 20, 42]), "square": normal(20, 20)}
    graph = check([step("MatMul", ["x", "square"], "a"), *nodes], (2, 6, 7, 20), ["z", "y"], extra)
    assert "copy_strided_f32" not in families(graph)
    nodes[0] = step("Transpose", ["x"], "t", perm=FIRST[4])
    check([*nodes[:3], step("Relu", ["y"], "z")], (2, 6, 7, 20), ["z"], extra)
