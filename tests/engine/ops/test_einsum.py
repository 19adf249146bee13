"""Einsum: equations of all kinds against numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes
from general_models import alike, node_bytes, run_engine
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


EQUATIONS = {
    "ij,jk->ik": [(3, 4), (4, 5)],
    "ij,jk": [(3, 4), (4, 5)],
    "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
    "bhid,bhjd->bhij": [(2, 3, 4, 5), (2, 3, 6, 5)],
    "bhwkc,bnkc->bhwkn": [(2, 3, 4, 2, 5), (2, 6, 2, 5)],
    "...ii->...i": [(2, 3, 4, 4)],
    "ii": [(4, 4)],
    "ij->ji": [(3, 4)],
    "ij->": [(3, 4)],
    "i,j->ij": [(3,), (4,)],
    "i,i": [(5,), (5,)],
    "bi,oij,bj->bo": [(2, 3), (4, 3, 5), (2, 5)],
    "...ij,...jk->...ik": [(2, 3, 4, 5), (3, 5, 6)],
    "a,ab,abc->abc": [(2,), (2, 3), (2, 3, 4)],
    "ab,cb->a": [(2, 3), (4, 3)],
    "ij,jk,kl->il": [(2, 1), (3, 4), (4, 5)],
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation):
    inputs = {f"x{index}": normal(*shape, seed=index) for index, shape in enumerate(EQUATIONS[equation])}
    expected = np.einsum(equation, *(value.astype(np.float64) for value in inputs.values()))
    found = run_engine(node_bytes("Einsum", inputs, equation=equation), inputs)
    alike(found, {"y": expected.astype(np.float32)}, rtol=1e-4, atol=1e-5)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_random_equations(data):
    sizes = {letter: data.draw(st.integers(1, 4)) for letter in "abcde"}
    terms = data.draw(
        st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True), min_size=1, max_size=3)
    )
    there = sorted({letter for term in terms for letter in term})
    result = data.draw(st.lists(st.sampled_from(there), unique=True))
    equation = f"{','.join(map(''.join, terms))}->{''.join(result)}"
    inputs = {f"x{i}": normal(*(sizes[letter] for letter in term), seed=i) for i, term in enumerate(terms)}
    expected = np.einsum(equation, *(value.astype(np.float64) for value in inputs.values()))
    found = run_engine(node_bytes("Einsum", inputs, equation=equation), inputs)
    alike(found, {"y": np.asarray(expected, np.float32)}, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("equation", ["ij->k", "ij,jk->ii", "ijk->ij", "ij;jk", "", "ij,jk->iijk"])
def test_an_equation_that_does_not_fit_is_refused_with_its_node(equation):
    inputs = {"a": normal(2, 3), "b": normal(3, 4)}
    with pytest.raises(PowerlabError, match="Einsum node 'n' has the equation"):
        load_bytes(node_bytes("Einsum", inputs, equation=equation))
