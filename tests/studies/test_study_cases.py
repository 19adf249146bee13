"""Which sweeps and points a study takes: every one it asks for, in one place, and none of another experiment."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.rigour import Rigour
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Workload, WorkloadKind
from powerlab.studies.registry import STUDIES, find_study
from powerlab.studies.study import Threads

MODELS = ("alexnet", "resnet50", "resnet152", "densenet201", "yolov3", "fcn5", "vgg16")


def swept(study, batch_sizes, **changes):
    """Return every point that the study's sweeps would have on two cores."""
    points = []
    for template in study.plans:
        cores = ("", "0-1") if template.same_cores else ("",)
        plan = SweepPlan(
            models=template.models,
            threads=(2,),
            batch_sizes=batch_sizes(template),
            precisions=template.precisions,
            workload=WorkloadKind.TRAIN if template.trains else WorkloadKind.INFERENCE,
            optimizers=template.optimizers,
            cores=cores,
            rigour=Rigour.QUICK,
            **changes,
        )
        points += plan.points()
    return points


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
@pytest.mark.parametrize("quick", [False, True])
def test_every_point_that_a_study_runs_stands_in_one_case(study, quick):
    points = swept(study, lambda one: (quick and one.quick_batch_sizes) or one.batch_sizes)
    for point in points:
        assert [case.holds(point) for case in study.cases].count(True) == 1, point
    assert study.asked_by(points)


@given(
    st.sampled_from(list(STUDIES.values())),
    st.sampled_from(MODELS),
    st.integers(1, 512),
    st.integers(1, 16),
)
def test_a_point_stands_in_one_case_at_most_and_only_with_its_network(study, model, batch_size, threads):
    point = Point(workload=Workload(model=model, batch_size=batch_size), threads=threads, mode="current")
    places = [case for case in study.cases if case.holds(point)]
    assert len(places) <= 1
    assert all(model in case.models for case in places)
    assert study.holds(point) == bool(places)


def test_a_sweep_of_another_network_is_no_repetition():
    plan = SweepPlan(models=("vgg16",), threads=(1,))
    assert not any(study.asked_by(plan.points()) for study in STUDIES.values())
    assert not any(study.asked_by(()) for study in STUDIES.values())


def test_a_sweep_of_many_networks_repeats_every_study_that_has_one():
    plan = SweepPlan(models=("vgg16", "resnet50"), threads=(1,), batch_sizes=(1, 4))
    asked = {name for name, study in STUDIES.items() if study.asked_by(plan.points())}
    assert asked == {"dlbench", "xavier-resnet50"}


def test_a_against_a_asks_for_the_same_point_twice():
    aa = find_study("aa")
    plan = SweepPlan(models=("alexnet",), threads=(2,))
    assert not aa.asked_by(plan.points())
    assert aa.asked_by(replace(plan, cores=("", "0-1")).points())


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_what_depends_on_the_device_is_left_to_it(study):
    """Names of modes and counts of cores belong to a device, and stand in no file but as words."""
    for plan in study.plans:
        assert plan.modes in {("all",), ("current",)}
        assert isinstance(plan.threads, Threads)
        assert not plan.same_cores or plan.threads is Threads.ALL
