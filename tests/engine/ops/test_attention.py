"""Attention, RotaryEmbedding and Einsum: every form against the standard's own reference implementation or numpy."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, model_bytes, node_bytes, run_engine
from onnx import helper
from onnx.reference import ReferenceEvaluator

from powerlab.domain.errors import PowerlabError


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def check(data, inputs, outputs=("y",)):
    expected = dict(zip(outputs, ReferenceEvaluator(data).run(None, inputs), strict=True))
    alike(run_engine(data, inputs), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("mask", [None, "float", "bool", "heads"])
@pytest.mark.parametrize(("query_heads", "key_heads"), [(4, 4), (6, 2), (3, 1)])
def test_attention_in_heads(causal, mask, query_heads, key_heads):
    inputs = {
        "q": normal(2, query_heads, 5, 8),
        "k": normal(2, key_heads, 7, 8, seed=1),
        "v": normal(2, key_heads, 7, 10, seed=2),
    }
    seen = np.random.default_rng(3).random((5, 7)) < 0.7
    if mask == "float":
        inputs["m"] = np.where(seen, 0, -np.inf).astype(np.float32)
    elif mask == "bool":
        inputs["m"] = seen
    elif mask == "heads":
        inputs["m"] = normal(2, query_heads, 5, 7, seed=4)
    check(node_bytes("Attention", inputs, opset=24, is_causal=causal), inputs)


@pytest.mark.parametrize("options", [{}, {"scale": 0.3, "softcap": 2.0}, {"is_causal": 1}], ids=str)
def test_attention_of_flat_heads_with_a_past(options):
    inputs = {
        "q": normal(2, 3, 4 * 8),
        "k": normal(2, 3, 2 * 8, seed=1),
        "v": normal(2, 3, 2 * 6, seed=2),
        "pk": normal(2, 2, 5, 8, seed=3),
        "pv": normal(2, 2, 5, 6, seed=4),
    }
    outputs = ("y", "present_k", "present_v", "scores")
    data = node_bytes(
        "Attention",
        inputs,
        outputs=outputs,
        order=["q", "k", "v", "", "pk", "pv"],
        opset=24,
        q_num_heads=4,
        kv_num_heads=2,
        qk_matmul_output_mode=3,
        **options,
    )
    check(data, inputs, outputs)


def test_a_query_that_may_see_nothing_gets_zeros():
    inputs = {"q": normal(1, 1, 3, 4), "k": normal(1, 1, 5, 4, seed=1), "v": normal(1, 1, 5, 4, seed=2)}
    inputs["m"] = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)
    found = run_engine(node_bytes("Attention", inputs, opset=24), inputs)["y"]
    np.testing.assert_array_equal(found[0, 0, 1], np.zeros(4))
    assert np.isfinite(found).all()
    folded = run_engine(node_bytes("Attention", {}, constants=inputs, opset=24), {})["y"]
    np.testing.assert_allclose(folded, found, rtol=1e-5)


@pytest.mark.parametrize(
    "shapes",
    [
        {"q": (1, 2, 3, 4), "k": (1, 2, 3, 5), "v": (1, 2, 3, 4)},
        {"q": (1, 3, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 3, 4)},
        {"q": (1, 2, 3, 4), "k": (1, 2, 3, 4), "v": (1, 2, 4, 4)},
        {"q": (1, 3, 8), "k": (1, 3, 8), "v": (1, 3, 8)},
    ],
    ids=str,
)
def test_attention_that_does_not_fit_is_refused_with_its_node(shapes):
    with pytest.raises(PowerlabError, match="Attention node 'n'"):
        load_bytes(node_bytes("Attention", {name: normal(*shape) for name, shape in shapes.items()}, opset=24))


def test_attention_as_exporters_write_it_needs_no_copy_of_the_keys():
    nodes = [
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("Softmax", ["s"], ["w"], axis=-1),
        helper.make_node("MatMul", ["w", "v"], ["y"]),
    ]
    inputs = {"q": normal(1, 2, 5, 8), "k": normal(1, 2, 7, 8, seed=1), "v": normal(1, 2, 7, 8, seed=2)}
    check(model_bytes(nodes, inputs), inputs)
