"""Plans that train: their points, what is refused, and that training is never ranked beside inference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.analysis.best import work_of
from powerlab.analysis.dimensions import in_words
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.mode import CURRENT_MODE
from powerlab.domain.preflight import complaints, engines_for
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind
from powerlab.reports.reproduce import profile_command

PLAN = SweepPlan(models=("alexnet",), threads=(1, 2), workload=WorkloadKind.TRAIN, optimizers=("sgd", "adam"))
DEVICE = Device(
    name="bench-7",
    board="generic",
    architecture="aarch64",
    cpu_model="Carmel",
    core_count=8,
    memory_bytes=1 << 35,
    kernel="4.9.337",
    simulated=False,
)
ABLE = Capabilities(
    sources=(), total=None, modes=(CURRENT_MODE,), workloads=tuple(WorkloadKind), recomputes=True, trains_on_gpu=True
)


def test_optimizers_are_a_dimension_of_training_alone():
    points = PLAN.points()
    assert {(one.workload.kind, one.workload.optimizer) for one in points} == {("train", "sgd"), ("train", "adam")}
    assert PLAN.point_count == len({point.id for point in points}) == 4
    answering = replace(PLAN, workload=WorkloadKind.INFERENCE, optimizers=())
    assert {point.id for point in answering.points()}.isdisjoint(point.id for point in points)
    assert {point.workload.optimizer for point in answering.points()} == {""}


def test_training_is_work_of_its_own_in_words():
    trained = PLAN.points()[0]
    answers = replace(PLAN, workload=WorkloadKind.INFERENCE, optimizers=()).points()[0]
    assert work_of(trained) == "alexnet, trained by sgd"
    assert work_of(answers) == "alexnet"
    assert in_words(trained) == "alexnet, train, optimizer sgd, batch 1, 1 thread, mode current"
    assert in_words(answers) == "alexnet, batch 1, 1 thread, mode current"


def test_whether_activations_are_computed_again_is_a_dimension_that_says_nothing_where_they_are_kept():
    both = replace(PLAN, recompute=tuple(Recompute))
    assert both.point_count == len({point.id for point in both.points()}) == 2 * PLAN.point_count
    assert {point.id for point in PLAN.points()} < {point.id for point in both.points()}
    again = next(point for point in both.points() if point.workload.recomputes)
    assert in_words(again) == "alexnet, train, optimizer sgd, batch 1, recompute yes, 1 thread, mode current"
    assert work_of(again) == work_of(PLAN.points()[0])
    assert "--recompute no,yes" in profile_command(both)


def test_the_command_that_repeats_a_plan_says_how_it_trains():
    assert "--workload train --threads 1,2 --optimizer sgd,adam" in profile_command(PLAN)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"engines": ("ncnn",)}, "the engine ncnn does not train; leave it out, or choose from: builtin, torch"),
        (
            {"precisions": ("bf16",), "processors": (Processor.GPU,), "threads": (1,)},
            "the engine builtin trains in fp32 alone on a graphics processor; leave out the precision bf16, or",
        ),
        ({"precisions": ("int8",)}, "models are trained in fp32 or bf16; leave out the precision int8."),
        ({"scenarios": (Scenario.OFFLINE,)}, "steps of training follow each other as in single-stream; leave out the"),
        ({"slices": (2,), "batch_sizes": (2,), "engines": ("torch",)}, "the engine builtin alone trains a batch in"),
        ({"slices": (2,), "batch_sizes": (3,)}, "a batch of 3 cannot be shared evenly by 2 slices"),
        ({"spin_us": (0,)}, "how long threads spin cannot be set where a model is trained"),
        ({"preparation": Preparation.INSIDE}, "models are trained on random numbers, which nobody prepares"),
        ({"optimizers": ("sdg",)}, "the optimizer 'sdg' is not known (did you mean sgd?); choose from: sgd, momentum"),
        ({"optimizers": ()}, "training needs an optimizer; name one, such as --optimizer sgd."),
        ({"optimizers": ("sgd", "sgd")}, "sgd stands twice among the optimizers"),
        (
            {"recompute": (Recompute.YES,), "engines": ("builtin", "torch")},
            "the engine builtin alone computes activati",
        ),
        (
            {"workload": WorkloadKind.INFERENCE, "optimizers": (), "recompute": (Recompute.YES,)},
            "activations are computed again in training alone; add --workload train, or leave --recompute out.",
        ),
        ({"workload": WorkloadKind.INFERENCE}, "an optimizer is for training alone; add --workload train"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(changes, sentence):
    found = complaints(replace(PLAN, **changes), DEVICE, ABLE)
    assert [one[: len(sentence)] for one in found] == [sentence]
    assert complaints(PLAN, DEVICE, ABLE) == ()


def test_an_agent_that_is_older_than_training_is_not_asked_to_train():
    older = Capabilities(sources=(), total=None, modes=(CURRENT_MODE,))
    (found,) = complaints(PLAN, DEVICE, older)
    assert found == "bench-7 does not say that it can train, for its agent is older than that; update it."


def test_an_agent_that_is_older_than_recomputing_is_not_asked_to():
    older = replace(ABLE, recomputes=False)
    (found,) = complaints(replace(PLAN, recompute=(Recompute.YES,)), DEVICE, older)
    assert found.startswith("bench-7 does not say that it can compute activations again, for its agent is older than")


def test_an_agent_that_is_older_than_training_on_a_graphics_processor_is_not_asked_to():
    plan = replace(PLAN, processors=(Processor.GPU,), threads=(1,))
    assert complaints(plan, DEVICE, ABLE) == ()
    (found,) = complaints(plan, DEVICE, replace(ABLE, trains_on_gpu=False))
    assert found.startswith("bench-7 does not say that it can train on a graphics processor, for its agent is older")


def test_all_engines_of_a_plan_that_trains_are_those_that_train():
    assert engines_for(PLAN) == ("builtin", "torch", "torch-compile")
    assert "ncnn" in engines_for(replace(PLAN, workload=WorkloadKind.INFERENCE, optimizers=()))
