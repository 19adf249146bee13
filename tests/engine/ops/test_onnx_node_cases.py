"""ONNX's own node cases: the engine gives the published answer or says what it lacks, never another answer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from engine_models import load_bytes

import write_operators_page
from node_cases import Outcome, frozen, load_cases, run_cases
from powerlab.domain.errors import PowerlabError
from powerlab.engine.ops import SUPPORTED
from powerlab.engine.ops.quantized import OF_MICROSOFT
from powerlab.engine.ops.sequences import SEQUENCES
from powerlab.engine.passes.fold.constants import fold_constants

FOLDED = 870
"""How many cases fold at least: an operator form that gets lost shows here."""

ENOUGH = 0.9
"""The share of an operator's float32 cases that pass."""

HAS_NO_CASE = {"GlobalLpPool", *OF_MICROSOFT, *SEQUENCES}
"""Operators that ONNX tests nowhere itself, or with sequences as inputs and outputs alone; those of ONNX Runtime are
compared with it in ``quantization``, those on sequences in ``test_sequences``."""


@pytest.fixture(scope="module")
def cases():
    return load_cases()


@pytest.fixture(scope="module")
def verdicts(cases, tmp_path_factory):
    return list(run_cases(cases, tmp_path_factory.mktemp("cases")))


def test_there_are_cases_for_every_operator(cases):
    assert not SUPPORTED - {case.operator for case in cases} - HAS_NO_CASE


@pytest.mark.campaign
def test_cases_are_the_same_whenever_they_are_loaded(cases):
    assert [(case.name, case.opset) for case in load_cases()] == [(case.name, case.opset) for case in cases]


def test_no_case_is_answered_wrongly(verdicts):
    wrong = [verdict for verdict in verdicts if verdict.outcome == Outcome.WRONG]
    assert not wrong, [(verdict.case.name, verdict.reason) for verdict in wrong]


def test_the_page_says_what_the_cases_say(verdicts):
    """``make docs`` writes it anew."""
    assert write_operators_page._PAGE.read_text(encoding="utf-8") == write_operators_page.page(verdicts)


def test_every_refusal_is_one_sentence(verdicts):
    for verdict in verdicts:
        if verdict.outcome == Outcome.REFUSED:
            assert "\n" not in verdict.reason, verdict.case.name
            assert verdict.reason.endswith("."), (verdict.case.name, verdict.reason)


def test_of_every_operator_enough_float32_cases_pass(verdicts):
    floats = [verdict for verdict in verdicts if verdict.case.is_float32]
    total = Counter(verdict.case.operator for verdict in floats)
    refused = Counter(verdict.case.operator for verdict in floats if verdict.outcome == Outcome.REFUSED)
    too_few = {name for name in SUPPORTED - HAS_NO_CASE if total[name] - refused[name] < ENOUGH * total[name]}
    assert not too_few


def test_constants_fold_to_the_published_answer(cases):
    folded = []
    for case in cases:
        if not all(isinstance(value, np.ndarray) for value in case.inputs):
            continue
        try:
            data, _ = frozen(case, frozenset(range(len(case.inputs))))
            graph = fold_constants(load_bytes(data))
        except PowerlabError:
            continue
        if all(info.name in graph.constants for info in graph.outputs):
            for info, expected in zip(graph.outputs, case.outputs, strict=True):
                # float16 and float64 are read as float32, so that types may differ here
                found = graph.constants[info.name].astype(np.float64)
                rtol = {"float16": 4e-3, "bfloat16": 2.0**-6}.get(expected.dtype.name, 1e-3)
                np.testing.assert_allclose(found, expected.astype(np.float64), rtol, 1e-6, err_msg=case.name)
            folded.append(case.name)
    assert len(folded) >= FOLDED, (len(folded), folded)


def test_a_case_is_of_float32_where_all_that_may_be_is(cases):
    of_name = {case.name: case.is_float32 for case in cases}
    assert of_name["test_add"]
    assert of_name["test_gather_0"], "indices are never float32"
    assert of_name["test_shape"], "a shape is never float32"
    assert of_name["test_softmax_axis_0_expanded"]
    assert not of_name["test_add_uint8"]
    assert not of_name["test_cast_DOUBLE_to_FLOAT"]
    assert not of_name["test_identity_sequence"]
