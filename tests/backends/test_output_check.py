"""Engines whose answers are others than the built-in engine's are not measured."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Scenario, Workload
from powerlab.engine import Session
from powerlab.measure import output_check
from powerlab.measure.output_check import TOLERANCES, OutputCheck, check_outputs, compared, largest_difference
from powerlab.measure.worker.process import WorkerError
from powerlab.sysroot import Sysroot

NUMBERS = arrays(np.float32, array_shapes(max_dims=3), elements=st.floats(-1e6, 1e6, width=32))
METER = SimpleNamespace(sysroot=Sysroot())


@given(NUMBERS)
def test_the_same_outputs_are_not_apart(values):
    assert largest_difference({"y": values}, {"y": values.copy()}) == 0.0


@given(NUMBERS, st.floats(2**-20, 1e3, width=32))
def test_the_share_does_not_depend_on_the_scale_of_the_outputs(values, scale):
    other = values + np.float32(0.5)
    one = largest_difference({"y": other}, {"y": values})
    scaled = largest_difference({"y": other * np.float64(scale)}, {"y": values * np.float64(scale)})
    if np.abs(values).max() > 0:
        assert scaled == pytest.approx(one, rel=1e-4)


def test_the_share_is_that_of_the_largest_number():
    expected = np.array([1.0, -4.0], np.float32)
    assert largest_difference({"y": np.array([1.5, -4.0], np.float32)}, {"y": expected}) == 0.125
    two = {"y": expected, "z": np.array([0.5], np.float32)}
    assert largest_difference({"y": expected, "z": np.array([0.25], np.float32)}, two) == 0.5
    assert largest_difference({"y": np.array([0.25])}, {"y": np.zeros(1, np.float32)}) == 0.25


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"z": np.ones((1, 2), np.float32)},
        {"y": np.ones((2, 1), np.float32)},
        {"y": np.full((1, 2), np.nan, np.float32)},
        {"y": np.array([[1.0, np.inf]], np.float32)},
    ],
)
def test_what_is_missing_misshapen_or_no_number_is_infinitely_apart(found):
    assert largest_difference(found, {"y": np.ones((1, 2), np.float32)}) == math.inf


@pytest.fixture
def answers(monkeypatch):
    """Let engines answer from a table instead of a worker; return what was asked."""
    asked = []

    def install(table):
        def outputs(point, meter, seeds, model_files, longest_s=math.inf):
            load = point.workload
            asked.append(load)
            answer = table[load.engine, load.precision]
            if isinstance(answer, Exception):
                raise answer
            return [{"y": np.array([[1.0, 2.0 + answer]], np.float32)} for _ in seeds]

        monkeypatch.setattr(output_check, "_outputs", outputs)
        return asked

    return install


def plan(**changes):
    return SweepPlan(models=("resnet50",), threads=(1, 2), **changes)


def test_the_built_in_engine_alone_is_compared_with_nothing(answers):
    asked = answers({})
    found = check_outputs(plan(), METER)
    assert (found, asked, found.words) == (OutputCheck(), [], "")


def test_each_engine_is_compared_once_at_every_batch_size(answers):
    asked = answers({("builtin", "fp32"): 0.0, ("torch", "fp32"): 1e-4, ("ncnn", "fp32"): 2e-4})
    many = plan(
        engines=("torch", "builtin", "ncnn"), batch_sizes=(1, 4), scenarios=(Scenario.SINGLE_STREAM, Scenario.OFFLINE)
    )
    found = check_outputs(many, METER)
    assert len(asked) == len(set(asked)) == 6
    assert found.differences[Workload(model="resnet50", batch_size=4, engine="ncnn")] == pytest.approx(1e-4, rel=0.01)
    assert found.words == (
        "The outputs of ncnn, torch are those of the built-in engine in fp32, to within 1.0e-04 of the largest."
    )
    assert OutputCheck(differences=dict.fromkeys(found.differences, 0.0)).words.endswith("in fp32, bit for bit.")
    assert {found.of(point) is None for point in many.points() if point.workload.engine == "builtin"} == {True}
    assert {found.of(point) is None for point in many.points() if point.workload.engine != "builtin"} == {False}


def test_another_answer_is_refused_with_the_difference(answers):
    answers({("builtin", "fp32"): 0.0, ("openvino", "fp32"): 0.5})
    with pytest.raises(PowerlabError) as refused:
        check_outputs(plan(engines=("openvino",)), METER)
    assert str(refused.value) == (
        "the outputs of openvino for resnet50 (batch 1, fp32) differ from the built-in engine's by 0.25 of the largest "
        "output, where 0.001 is allowed; leave out this engine or this model, because they do not compute the same "
        "function."
    )


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_fewer_bits_may_be_further_apart(answers, precision):
    answers({("builtin", "fp32"): 0.0, ("torch", precision): 0.03})
    found = check_outputs(plan(engines=("torch",), precisions=(precision,)), METER)
    assert list(found.differences.values()) == [pytest.approx(0.015, rel=1e-3)]
    assert TOLERANCES.get(precision, 1) > TOLERANCES["fp32"]
    (accuracy,) = found.accuracies.values()
    assert (accuracy.images, accuracy.agreeing) == (64, 64)
    assert accuracy.sqnr_db == pytest.approx(10 * math.log10(5 / 0.03**2), abs=0.01)


def test_a_function_that_is_another_one_is_refused_at_any_precision(answers):
    answers({("builtin", "fp32"): 0.0, ("torch", "int8"): 2.5})
    with pytest.raises(PowerlabError, match=r"torch for resnet50 \(batch 1, int8\) differ"):
        check_outputs(plan(engines=("torch",), precisions=("int8",)), METER)


def test_fp32_is_compared_on_one_batch_and_has_no_accuracy(answers):
    answers({("builtin", "fp32"): 0.0, ("torch", "fp32"): 1e-4})
    found = check_outputs(plan(engines=("torch",)), METER)
    assert found.accuracies == {}
    assert all(found.accuracy_of(point) is None for point in plan(engines=("torch",)).points())


def test_what_the_built_in_engine_cannot_run_is_measured_and_said_to_be_unchecked(answers):
    answers({("builtin", "fp32"): PowerlabError("no."), ("onnxruntime", "fp32"): 0.0})
    found = check_outputs(plan(engines=("onnxruntime",)), METER)
    assert found.words == "No outputs for resnet50 are compared, because the built-in engine cannot run it."
    assert not found.differences


def test_a_worker_that_crashes_says_nothing_yet(answers):
    answers({("builtin", "fp32"): 0.0, ("torch", "fp32"): WorkerError("gone"), ("ncnn", "fp32"): 0.0})
    found = check_outputs(plan(engines=("torch", "ncnn")), METER)
    assert [asked.engine for asked in found.differences] == ["ncnn"]


def test_a_worker_shows_what_the_engine_puts_out():
    (only,) = SweepPlan(models=("mobilenetv2",), threads=(1,)).points()
    (outputs,) = output_check._outputs(only, METER, seeds=[3])
    assert {name: value.shape for name, value in outputs.items()} == {"y": (1, 1000)}
    session = Session("mobilenetv2", threads=1)
    x = np.random.default_rng(3).standard_normal((1, 3, 224, 224), dtype=np.float32)
    assert np.array_equal(outputs["y"], session.run({"x": x})["y"])
    assert compared(only) == only.workload
