"""What a device cannot carry out is refused in one sentence that says how to fix it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import check_plan, complaints
from powerlab.domain.temperature import TemperatureLimits
from powerlab.domain.workload import Preparation, Processor, Scenario


def test_a_plan_the_device_can_carry_out_passes(make_plan, xavier, capabilities):
    check_plan(make_plan(threads=(1, 2, 4), modes=("current", "MAXN", "MODE_15W")), xavier, capabilities)


def test_batches_that_share_eight_images_evenly_pass_in_multi_stream(make_plan, xavier, capabilities):
    check_plan(make_plan(scenarios=(Scenario.MULTI_STREAM,), batch_sizes=(1, 2, 4, 8)), xavier, capabilities)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"threads": (1, 9, 12)},
            "bench-7 lets a sweep use 8 cores, but the plan asks for 9, 12 threads; ask for at most 8.",
        ),
        ({"modes": ("TURBO",)}, "bench-7 has no power mode 'TURBO' that can be set now; choose from: current, MAXN, "),
        ({"modes": ("MODE_10W",)}, "the power mode 'MODE_10W' takes effect only after a reboot; set it with "),
        (
            {"modes": ("MODE_15W",), "threads": (4, 6)},
            "the power mode 'MODE_15W' has 4 cores online, so 6 threads are impossible in it; leave out the mode",
        ),
        ({"repeats": 2}, "2 repeats cannot show the scatter between runs; ask for at least 3."),
        ({"seed": 2**31}, "the plan holds the number 2147483648; give integers up to 2147483647."),
        ({"batch_sizes": (1, 10**30)}, f"the plan holds the number {10**30}; give integers up to 2147483647."),
        ({"repeats": 50_001}, "the plan asks for 100002 runs; a sweep has at most 100000, so ask for less."),
        ({"repeats": 10**30}, f"the plan asks for {2 * 10**30} runs; a sweep has at most 100000, so ask for less."),
        ({"threads": (2, 1, 2)}, "2 stands twice among the threads; name every value once."),
        ({"models": ("a", "a")}, "a stands twice among the models; name every value once."),
        ({"modes": ()}, "the plan has no modes; name at least one."),
        ({"batch_sizes": (0,)}, "the batch size is 0; give at least 1."),
        ({"threads": (-1,)}, "the count of threads is -1; give at least 1."),
        ({"duration_s": 0.0}, "the duration is 0; give a time above 0 s."),
        ({"duration_s": float("nan")}, "the duration is nan; give a time above 0 s."),
        ({"duration_s": float("inf")}, "the duration is inf; give a time above 0 s."),
        ({"warm_up_s": -1.0}, "the warm-up is -1; give 0 s or more."),
        ({"idle_s": -1.0}, "the idle baseline is -1; give 0 s or more."),
        ({"longest_cooling_s": -1.0}, "the longest cooling is -1; give 0 s or more."),
        ({"sample_period_s": 0.0}, "the sample period is 0; give a time above 0 s."),
        ({"min_inferences": 0}, "the minimum count of inferences is 0; give at least 1."),
        (
            {"scenarios": (Scenario.MULTI_STREAM,), "batch_sizes": (1, 3, 16)},
            "a query of the multi-stream scenario holds 8 images, which batches of 3, 16 cannot share evenly; ask for "
            "batches of 1, 2, 4 or 8.",
        ),
        (
            {"engines": ("litert",), "processors": (Processor.CPU, Processor.GPU)},
            "the engine litert does not compute on the gpu; leave out one of them, or choose from: ",
        ),
        (
            {"engines": ("onnxruntime-tensorrt",)},
            "the engine onnxruntime-tensorrt does not compute on the cpu; leave out one of them, or choose from: ",
        ),
        ({"processors": ()}, "the plan has no processors; name at least one."),
        ({"engines": ("abacus",)}, "the engine 'abacus' is not known; choose one of: builtin, "),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(make_plan, xavier, capabilities, changes, sentence):
    with pytest.raises(PowerlabError) as caught:
        check_plan(make_plan(**changes), xavier, capabilities)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(".")


def test_slices_on_a_graphics_processor_share_no_threads(make_plan, xavier, capabilities):
    on_card = {"engines": ("onnxruntime",), "processors": (Processor.GPU,)}
    check_plan(make_plan(threads=(1,), batch_sizes=(4,), slices=(2,), **on_card), xavier, capabilities)


QUEUES = {"queues": (1, 2), "slices": (1, 2), "batch_sizes": (2,), "threads": (2,), "processors": (Processor.GPU,)}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"processors": (Processor.CPU,), "slices": (2,)}, "queues are a graphics processor's; add --processor gpu"),
        ({"engines": ("torch",)}, "the engine torch spreads no slices over queues; leave out one of them, or choose"),
        ({"preparation": Preparation.INSIDE}, "slices that prepare their own inputs are spread over no queues"),
        ({"queues": (1, 4)}, "4 queues have no more than 2 slices to compute; ask for more slices."),
        ({"queues": (2,)}, "1 slice cannot be spread over 2 queues; ask for more slices"),
        ({"queues": (0, 1)}, "the count of queues is 0; give at least 1."),
    ],
)
def test_queues_need_slices_and_an_engine_that_spreads_them(make_plan, xavier, capabilities, changes, sentence):
    known = replace(capabilities, knows_queues=True)
    assert complaints(make_plan(**QUEUES), xavier, known) == ()
    assert complaints(make_plan(**QUEUES), xavier, capabilities) == (
        "the agent of bench-7 is older than queues; update it, or leave them out.",
    )
    (said,) = complaints(make_plan(**{**QUEUES, **changes}), xavier, known)
    assert said.startswith(sentence)


def test_everything_that_is_wrong_is_said_at_once(make_plan, xavier, capabilities):
    wrong = {
        "repeats": 2,
        "duration_s": 0.0,
        "engines": ("abacus",),
        "batch_sizes": (0, 3),
        "slices": (2,),
        "cores": ("x", "0-1"),
        "threads": (9,),
        "modes": ("TURBO", "MODE_10W"),
    }
    words = ("2 repeats", "batch size is 0", "duration is 0", "'abacus'", "threads of 9", "a batch of 3", "'x'")
    words += ("cores 0-1 are 2", "8 cores", "'TURBO'", "after a reboot", "cores online")
    found = complaints(make_plan(**wrong), xavier, capabilities)
    assert [word for word, sentence in zip(words, found, strict=True) if word not in sentence] == []


def test_a_plan_without_complaints_has_none(make_plan, xavier, capabilities):
    assert complaints(make_plan(), xavier, capabilities) == ()


@pytest.mark.parametrize("wrong", [{"threads": ()}, {"batch_sizes": (10**400,)}, {"repeats": 10**30}])
def test_what_cannot_be_reckoned_with_is_said_alone(make_plan, xavier, capabilities, wrong):
    assert len(complaints(make_plan(**wrong, modes=("TURBO",)), xavier, capabilities)) == 1


def test_limits_of_temperatures_need_somebody_who_can_watch(make_plan, xavier, capabilities):
    plan = make_plan(max_temperature_c=85.0)
    watching = replace(capabilities, thermal_zones=("CPU-therm",))
    assert complaints(plan, xavier, watching) == ()
    assert complaints(make_plan(), xavier, replace(capabilities, thermal_zones=())) == ()
    assert complaints(plan, xavier, replace(capabilities, thermal_zones=())) == (
        "bench-7 has no temperature sensor that can be read, so nobody can watch that a run begins below 75 °C and is "
        "ended above 85 °C; leave the limits out, or see `powerlab doctor`.",
    )
    assert complaints(plan, xavier, replace(capabilities, thermal_zones=None)) == (
        "bench-7 does not say whether it has temperature sensors, for its agent is older than limits of temperatures; "
        "update it, or leave the limits out.",
    )
    owned = replace(capabilities, thermal_zones=(), temperature_limits=TemperatureLimits(max_c=60.0))
    assert "is ended above 60 °C" in complaints(make_plan(), xavier, owned)[0]
    (wrong,) = complaints(make_plan(max_temperature_c=1000.0), xavier, watching)
    assert wrong == "the highest temperature is 1000 °C; give one from -40 to 150 °C, or none."


def test_a_plan_is_not_refused_for_the_owners_lower_limit(make_plan, xavier, capabilities):
    owned = replace(capabilities, thermal_zones=("CPU-therm",), temperature_limits=TemperatureLimits(max_c=70.0))
    plan = make_plan(max_temperature_c=95.0, start_below_temperature_c=80.0)
    assert complaints(plan, xavier, owned) == ()
    held = plan.held_to(owned.temperature_limits)
    assert (held.max_temperature_c, held.temperature_limits.begins_below_c) == (70.0, 60.0)
    assert held.points() == plan.points()
