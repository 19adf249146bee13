"""Formulas that exporters write out: where they are a known operator they become it, else they stay what they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import check_by_ort, model_bytes
from onnx import helper

from powerlab.engine.passes import optimise
from powerlab.engine.statistics import operator_counts


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def number(value):
    return np.asarray(value, np.float32)


def gelu(form, half=0.5, root=2**0.5):
    """Return the nodes of a Gelu in the order an exporter multiplies, and their constants."""
    node = helper.make_node
    over = node("Div", ["x", "root"], ["s"]) if form != "times" else node("Mul", ["inverse", "x"], ["s"])
    start = [over, node("Erf", ["s"], ["e"]), node("Add", ["e", "one"] if form != "times" else ["one", "e"], ["a"])]
    if form == "half last":
        end = [node("Mul", ["x", "a"], ["m"]), node("Mul", ["m", "half"], ["y"])]
    else:
        end = [node("Mul", ["x", "half"], ["m"]), node("Mul", ["m", "a"], ["y"])]
    constants = {"root": number(root), "inverse": number(1 / root), "one": number(1), "half": number(half)}
    return [*start, *end], constants


@pytest.mark.parametrize("form", ["half last", "half first", "times"])
def test_a_gelu_of_five_operators_is_one(form):
    nodes, constants = gelu(form)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    assert operator_counts(optimise(load_bytes(data))) == {"Gelu": 1}
    check_by_ort(data, inputs, rtol=1e-4)


@pytest.mark.parametrize(("half", "root"), [(0.51, math.sqrt(2)), (0.5, 1.5)])
def test_a_formula_like_a_gelu_is_none(half, root):
    nodes, constants = gelu("half last", half, root)
    inputs = {"x": normal(3, 40)}
    data = model_bytes(nodes, inputs, constants=constants)
    assert "Gelu" not in operator_counts(optimise(load_bytes(data)))
    check_by_ort(data, inputs, rtol=1e-4)
