"""What a level stands for, and that no plan wears the name of one whose times it does not give."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.domain.preflight import MIN_REPEATS, check_plan
from powerlab.domain.rigour import LEVELS, TIMES_AND_COUNTS, Rigour, falls_short, least_inferences
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Scenario, Workload

DEVICE = Device(
    name="bench",
    board="generic",
    architecture="x86_64",
    cpu_model="a processor",
    core_count=4,
    memory_bytes=1 << 33,
    kernel="6.1",
    simulated=False,
)
CAPABILITIES = Capabilities(sources=(), total=None, modes=(CURRENT_MODE,))


def plan_of(level: Rigour, **changes: float) -> SweepPlan:
    values = {name: getattr(LEVELS[level], name) for name in TIMES_AND_COUNTS}
    return SweepPlan(models=("m",), threads=(1,), rigour=level, **{**values, **changes})  # type: ignore[arg-type]


def test_the_usual_plan_is_the_quick_level():
    plan = SweepPlan(models=("m",), threads=(1,))
    assert plan.rigour is Rigour.QUICK
    assert {name: getattr(plan, name) for name in TIMES_AND_COUNTS} == {
        name: getattr(LEVELS[Rigour.QUICK], name) for name in TIMES_AND_COUNTS
    }


def test_publishable_is_what_mlperf_asks():
    """600 s, 1024 queries of a single stream, 24,576 images offline: inference_rules.adoc."""
    level = LEVELS[Rigour.PUBLISHABLE]
    assert (level.duration_s, level.min_inferences, level.offline_images) == (600.0, 1024, 24_576)
    assert least_inferences(Rigour.PUBLISHABLE, 1024, Workload(model="m", batch_size=1)) == 1024
    for batch_size in (1, 7, 32, 100_000):
        workload = Workload(model="m", batch_size=batch_size, scenario=Scenario.OFFLINE)
        assert least_inferences(Rigour.PUBLISHABLE, 1024, workload) * batch_size >= 24_576
    assert least_inferences(Rigour.QUICK, 10, Workload(model="m", batch_size=1, scenario=Scenario.OFFLINE)) == 10


def test_each_level_asks_for_no_less_than_the_one_before():
    for name in TIMES_AND_COUNTS:
        values = [getattr(LEVELS[level], name) for level in Rigour]
        assert values == sorted(values), name
    assert all(level.repeats >= MIN_REPEATS for level in LEVELS.values())
    assert all(level.longest_warm_up_s >= level.warm_up_s > 0 for level in LEVELS.values())
    assert {field.name for field in fields(SweepPlan)} >= set(TIMES_AND_COUNTS)


@pytest.mark.parametrize("level", list(Rigour))
def test_a_plan_with_its_levels_times_is_accepted(level):
    check_plan(plan_of(level), DEVICE, CAPABILITIES)


@given(
    level=st.sampled_from(list(Rigour)),
    factors=st.dictionaries(st.sampled_from(sorted(TIMES_AND_COUNTS)), st.floats(1, 10), min_size=1),
)
def test_more_than_a_level_asks_for_is_never_too_little(level, factors):
    asked = {name: getattr(LEVELS[level], name) for name in TIMES_AND_COUNTS}
    assert falls_short(level, {name: value * factors.get(name, 1.0) for name, value in asked.items()}) == ""


@pytest.mark.parametrize("level", [Rigour.STANDARD, Rigour.PUBLISHABLE])
@pytest.mark.parametrize("name", sorted(TIMES_AND_COUNTS))
def test_less_of_anything_loses_the_name(level, name):
    asked = {each: getattr(LEVELS[level], each) for each in TIMES_AND_COUNTS}
    sentence = falls_short(level, {**asked, name: asked[name] * 0.99})
    assert TIMES_AND_COUNTS[name][0] in sentence
    assert falls_short(Rigour.QUICK, dict.fromkeys(TIMES_AND_COUNTS, 0.0)) == ""


def test_the_refusal_says_what_is_missing_and_how_to_mend_it():
    with pytest.raises(PowerlabError) as caught:
        check_plan(plan_of(Rigour.PUBLISHABLE, duration_s=5.0), DEVICE, CAPABILITIES)
    assert str(caught.value) == (
        "the plan calls itself publishable, but the duration is 5 s, not 600 s; give at least that, or ask for the "
        "rigour quick."
    )
    check_plan(replace(plan_of(Rigour.PUBLISHABLE, duration_s=5.0), rigour=Rigour.QUICK), DEVICE, CAPABILITIES)
