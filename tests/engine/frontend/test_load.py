"""Shapes given to a model: integers for inputs that exist, and one clear sentence for all else."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import onnx_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph

SHAPE = (1, 3, 32, 32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of two inputs; the first leaves batch, height and width open."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Clip", ["z"], ["b"]),
    ]
    path = tmp_path_factory.mktemp("models") / "open.onnx"
    path.write_bytes(onnx_bytes(nodes, {"x": ("n", 3, "h", "w"), "z": (2, 5)}, ["a", "b"]))
    return path


@pytest.mark.parametrize("name", ["mobilenetv2", None], ids=["zoo", "onnx"])
@pytest.mark.parametrize(
    "shape",
    [(1.5, 3, 32, 32), (1.0, 3, 32, 32), ("1", 3, 32, 32), (None, 3, 32, 32), "1x3x32x32", 4, None, ((1,), 3, 32, 32)],
    ids=repr,
)
def test_sizes_that_are_no_whole_numbers_are_refused_and_not_cut(model, name, shape):
    with pytest.raises(PowerlabError) as error:
        Session(name or model, shapes={"x": shape})
    wanted = f"the shape of the input 'x' must be integers such as (1, 3, 224, 224), not {str(shape)!r}."
    assert str(error.value) == wanted


@pytest.mark.parametrize("shapes", [[SHAPE], SHAPE, "x=1x3x32x32"], ids=["list", "tuple", "text"])
def test_shapes_without_names_are_refused(model, shapes):
    for which in ("mobilenetv2", model):
        with pytest.raises(PowerlabError, match=r'^shapes must be a dict such as \{"x": \(1, 3, 224, 224\)\}, not '):
            load_graph(which, shapes)


def test_an_array_of_sizes_is_as_good_as_a_tuple(model):
    for sizes in (list(SHAPE), np.array(SHAPE), tuple(map(np.int64, SHAPE)), np.zeros(SHAPE).shape):
        graph = load_graph(model, {"x": sizes})
        assert graph.shape("x") == graph.shape("a") == SHAPE
        assert all(type(size) is int for size in graph.shape("x"))
        assert load_graph("mobilenetv2", {"x": sizes}).inputs[0].shape == SHAPE


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 40))
def test_an_open_shape_takes_any_sizes_and_the_rest_stays(model, batch, height, width):
    graph = load_graph(model, {"x": (batch, 3, height, width)})
    assert graph.shape("a") == (batch, 3, height, width)
    assert graph.shape("b") == (2, 5)


def test_a_shape_given_wins_over_the_batch_size_and_the_batch_size_over_the_file(model):
    graph = load_graph(model, {"x": (4, 3, 8, 8)}, batch_size=7)
    assert (graph.shape("x"), graph.shape("z")) == ((4, 3, 8, 8), (7, 5))
    assert load_graph("mobilenetv2", {"x": (4, 3, 32, 32)}, batch_size=7).inputs[0].shape == (4, 3, 32, 32)


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        (
            None,
            r"its input 'x' leaves the size of axis 0 \('n'\) open; give it, for example shapes=",
        ),
        ({"x": (1, 3, 8)}, r"its input 'x' has 4 axes, but the shape \(1, 3, 8\) was given"),
        ({"x": (1, 3, 8, 0)}, r"the shape \(1, 3, 8, 0\) given for input 'x' has a dimension of size 0 or less"),
        ({"x": (1, 3, 8, 8), "y": (1,)}, "it has no input 'y'; its inputs are 'x', 'z'"),
        ({"x": (2**40, 3, 8, 8)}, "the input 'x' has the impossible shape"),
    ],
)
def test_shapes_that_do_not_fit_the_model_are_explained(model, shapes, sentence):
    with pytest.raises(PowerlabError, match=sentence):
        load_graph(model, shapes)


def test_a_graph_takes_no_shapes(model):
    graph = load_graph(model, {"x": SHAPE})
    with pytest.raises(PowerlabError, match="a graph has its shapes already"):
        Session(graph, shapes={"x": SHAPE})


def test_the_name_of_a_zoo_model_is_no_path_and_a_path_no_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resnet50").write_bytes(b"not a model")
    assert load_graph("resnet50", {"x": SHAPE}).name == "resnet50"
    with pytest.raises(PowerlabError, match="resnet50"):
        load_graph(tmp_path / "resnet50")
    with pytest.raises(PowerlabError, match=r"there is no model 'resnet17' \(did you mean resnet18\?\); known are"):
        load_graph("resnet17")
