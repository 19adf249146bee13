"""What transformers are made of, in engines that get powerlab's graph."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import HERE, TOLERANCE, difference, loaded
from engine_models import onnx_bytes
from onnx import helper

from powerlab.backends.attention import join_attentions
from powerlab.domain.errors import PowerlabError
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.passes import optimise_for_others

TRANSLATED = sorted({"ncnn", "torch"} & set(HERE))
HEADS, ROWS, FEATURES = 2, 5, 3


def constants(*shape):
    return np.random.default_rng(3).standard_normal(shape, dtype=np.float32)


@pytest.fixture
def written(tmp_path):
    def write(nodes, shape, known=None, outputs=("y",)):
        path = tmp_path / "model.onnx"
        path.write_bytes(onnx_bytes(nodes, {"x": shape}, outputs, constants=known or {}))
        return path

    return write


def attention(*, keys=(0, 1, 3, 2), axis=-1, scale=True):
    """Return nodes that attend to x by itself."""
    factor = [helper.make_node("Mul", ["products", "factor"], ["scores"])] if scale else []
    scores = "scores" if scale else "products"
    return [
        helper.make_node("Transpose", ["x"], ["keys"], perm=list(keys)),
        helper.make_node("MatMul", ["x", "keys"], ["products"]),
        *factor,
        helper.make_node("Softmax", [scores], ["shares"], axis=axis),
        helper.make_node("MatMul", ["shares", "x"], ["y"]),
    ]


FACTOR = {"factor": np.float32(0.4)}


def operators(path):
    return [node.op_type for node in join_attentions(optimise_for_others(load_graph(str(path), batch_size=1))).nodes]


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_whole_transformer(engine, batch_size):
    assert difference(engine, "vit-tiny", batch_size) < TOLERANCE


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("scale", [False, True])
def test_attention_is_one_operator(engine, scale, written):
    path = written(attention(scale=scale), (1, HEADS, ROWS, FEATURES), FACTOR)
    assert operators(path) == ["Attention"]
    assert difference(engine, path) < TOLERANCE


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [(attention(axis=-2), ("y",)), (attention(), ("y", "shares"))],
    ids=["softmax of columns", "shares that are given out"],
)
def test_what_is_no_attention_stays_apart(nodes, outputs, written):
    path = written(nodes, (1, HEADS, ROWS, FEATURES), FACTOR, outputs)
    assert operators(path).count("Product") == 2


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("shape", [(ROWS, FEATURES), (1, FEATURES), (1, ROWS, 1)])
@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"])
def test_constants_that_broadcast(engine, operator, shape, written):
    nodes = [
        helper.make_node("Exp", ["x"], ["positive"]),
        helper.make_node(operator, ["positive", "c"], ["y"]),
    ]
    path = written(nodes, (1, ROWS, FEATURES), {"c": constants(*shape)})
    assert difference(engine, path) < TOLERANCE


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("place", [0, 2, -1])
def test_one_place_is_taken_out(engine, place, written):
    path = written([helper.make_node("Gather", ["x", "i"], ["y"], axis=1)], (1, ROWS, FEATURES), {"i": np.array(place)})
    assert difference(engine, path) < TOLERANCE


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 2, 1, 3), (0, 2, 3, 1), (0, 3, 1, 2), (0, 3, 2, 1)])
def test_axes_of_an_image_change_places(engine, order, written):
    path = written([helper.make_node("Transpose", ["x"], ["y"], perm=list(order))], (1, 2, 3, 5))
    assert difference(engine, path) < TOLERANCE


@pytest.mark.parametrize("engine", TRANSLATED)
def test_norms_of_rows(engine, written):
    known = {"scale": constants(FEATURES), "shift": constants(FEATURES)}
    nodes = [helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["y"], epsilon=1e-3)]
    assert difference(engine, written(nodes, (1, ROWS, FEATURES), known)) < TOLERANCE


NOT_TRANSLATED = {
    "several places": ([helper.make_node("Gather", ["x", "i"], ["y"], axis=1)], {"i": np.array([0, 2])}),
    "another function": ([helper.make_node("Mod", ["x", "c"], ["y"], fmod=1)], {"c": constants(ROWS, FEATURES)}),
}


@pytest.mark.parametrize("engine", TRANSLATED)
@pytest.mark.parametrize("name", NOT_TRANSLATED)
def test_what_is_not_translated_is_refused_in_a_sentence(engine, name, written):
    nodes, known = NOT_TRANSLATED[name]
    with pytest.raises(PowerlabError, match=r"model knows|translated|batch axis") as refused:
        loaded(engine, written(nodes, (1, ROWS, FEATURES), known))
    assert "\n" not in str(refused.value)
