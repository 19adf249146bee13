"""The words of a command line become a plan, or one sentence about the word that is wrong."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.best import GOALS
from powerlab.cli.arguments.plan import plan_from
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.sweep import SEARCH_GOALS

BLANK = st.sampled_from(["", " ", "  ", "\t"])


def device(core_count: int = 8) -> Device:
    return Device(
        name="bench-7",
        board="jetson-agx-xavier",
        architecture="aarch64",
        cpu_model="Carmel",
        core_count=core_count,
        memory_bytes=1 << 35,
        kernel="4.9.337",
        simulated=False,
    )


CAPABILITIES = Capabilities(
    sources=(),
    total=None,
    modes=(
        CURRENT_MODE,
        PowerMode(name="MAXN", online_cores=8),
        PowerMode(name="MODE_15W", online_cores=4),
        PowerMode(name="MODE_10W", online_cores=2, requires_reboot=True),
    ),
)


def words(**changes: object) -> argparse.Namespace:
    plain = {
        "models": ["resnet50"],
        "threads": None,
        "batch": "1",
        "modes": "current",
        "engine": "builtin",
        "workload": "inference",
        "optimizer": None,
        "precision": "fp32",
        "scenario": "single-stream",
        "processor": "cpu",
        "slices": "1",
        "recompute": "no",
        "queues": "1",
        "spin_us": None,
        "cores": None,
        "preparation": "outside",
        "latency_bound_ms": "0",
        "min_sqnr": "20",
        "seed": "0",
        "rigour": "quick",
        "until": "0",
        "repeats": None,
        "duration": None,
        "min_inferences": None,
        "warm_up": None,
        "longest_warm_up": None,
        "idle": None,
        "cool_down": None,
        "max_temperature_c": None,
        "start_below_temperature_c": None,
        "longest_cooling": "900",
        "search": False,
        "search_epsilon": None,
        "goal": None,
        "propose_modes": False,
    }
    return argparse.Namespace(**{**plain, **changes})


@st.composite
def lists(draw):
    """Return integers and one of the ways to write them as a list."""
    numbers = draw(st.lists(st.integers(1, 10_000), min_size=1, max_size=6))
    parts = [f"{draw(BLANK)}{number}{draw(BLANK)}" for number in numbers]
    for _ in range(draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), draw(BLANK))
    return numbers, ",".join(parts)


@given(lists())
def test_a_list_is_read_however_it_is_spaced(listed):
    numbers, text = listed
    assert plan_from(words(batch=text), device(), CAPABILITIES).batch_sizes == tuple(numbers)


@given(st.text(max_size=12))
def test_any_word_is_a_number_or_is_named_in_a_sentence(text):
    try:
        plan = plan_from(words(batch=f"4,{text}", seed=text), device(), CAPABILITIES)
    except PowerlabError as error:
        sentence = str(error)
    else:
        assert plan.batch_sizes[0] == 4
        assert plan.seed == int(text)
        return
    assert sentence.startswith(("invalid --batch ", "invalid --seed "))
    assert "give " in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("modes", "core_count", "threads"),
    [
        ("current", 8, (1, 8)),
        ("current", 1, (1,)),
        ("MAXN", 8, (1, 8)),
        ("MAXN,MODE_15W", 8, (1, 4)),
        ("all", 8, (1, 4)),
        ("MODE_15W", 2, (1, 2)),
        ("no-such-mode", 8, (1, 8)),
    ],
)
def test_threads_left_out_are_one_and_what_every_mode_has(modes, core_count, threads):
    assert plan_from(words(modes=modes), device(core_count), CAPABILITIES).threads == threads


def test_a_graphics_processor_alone_has_no_threads_to_choose():
    with pytest.raises(PowerlabError, match="--threads counts threads of the cores, and a graphics processor has no"):
        plan_from(words(processor="gpu", threads="1,2"), device(), CAPABILITIES)
    assert plan_from(words(processor="gpu", threads="1"), device(), CAPABILITIES).threads == (1,)
    assert plan_from(words(processor="gpu,cpu", threads="1,2"), device(), CAPABILITIES).threads == (1, 2)


def test_all_modes_are_those_that_need_no_reboot():
    assert plan_from(words(modes=" all "), device(), CAPABILITIES).modes == ("current", "MAXN", "MODE_15W")
    assert plan_from(words(modes="MAXN, MODE_10W,"), device(), CAPABILITIES).modes == ("MAXN", "MODE_10W")


def test_every_word_finds_its_place():
    asked = words(
        models=["a.onnx", "alexnet"],
        threads="3,1",
        batch="8",
        repeats="7",
        seed="42",
        duration="0.5",
        warm_up="0.25",
        idle=".125",
        engine="tvm",
    )
    plan = plan_from(asked, device(), CAPABILITIES)
    assert (plan.models, plan.threads, plan.batch_sizes) == (("a.onnx", "alexnet"), (3, 1), (8,))
    assert (plan.repeats, plan.seed, plan.engines) == (7, 42, ("tvm",))
    assert (plan.duration_s, plan.warm_up_s, plan.idle_s) == (0.5, 0.25, 0.125)


@pytest.mark.parametrize(
    ("rigour", "warm_up", "longest_s"),
    [("quick", None, 10.0), ("quick", "0.2", 2.0), ("quick", "3", 10.0), ("standard", "1", 24.0), ("quick", "0", 0.0)],
)
def test_a_shorter_warm_up_shortens_the_wait_for_a_steady_state(rigour, warm_up, longest_s):
    plan = plan_from(words(rigour=rigour, warm_up=warm_up), device(), CAPABILITIES)
    assert plan.longest_warm_up_s == pytest.approx(longest_s)
    asked = plan_from(words(rigour=rigour, warm_up=warm_up, longest_warm_up="7"), device(), CAPABILITIES)
    assert asked.longest_warm_up_s == 7.0


@pytest.mark.parametrize("text", ["1%", " 1 %", "1", "1.0%"])
def test_until_is_a_percentage_with_or_without_its_sign(text):
    assert plan_from(words(until=text), device(), CAPABILITIES).until_percent == 1.0


def test_until_that_is_no_percentage_says_so():
    with pytest.raises(PowerlabError) as caught:
        plan_from(words(until="one"), device(), CAPABILITIES)
    assert str(caught.value) == "invalid --until 'one': give a percentage, such as 1%."


@pytest.mark.parametrize("option", ["duration", "warm_up", "idle"])
def test_a_time_that_is_none_names_its_option(option):
    with pytest.raises(PowerlabError) as caught:
        plan_from(words(**{option: "5s"}), device(), CAPABILITIES)
    flag = "--" + option.replace("_", "-")
    assert str(caught.value) == f"invalid {flag} value '5s': give a number."


def test_limits_of_temperatures_are_none_unless_they_are_given():
    plan = plan_from(words(), device(), CAPABILITIES)
    assert not plan.temperature_limits
    assert plan.longest_cooling_s == 900
    given_plan = plan_from(
        words(max_temperature_c="85.5", start_below_temperature_c=" 60", longest_cooling="30"), device(), CAPABILITIES
    )
    assert (given_plan.max_temperature_c, given_plan.start_below_temperature_c) == (85.5, 60.0)
    assert given_plan.longest_cooling_s == 30.0


@pytest.mark.parametrize("option", ["max_temperature_c", "start_below_temperature_c"])
def test_a_temperature_that_is_none_is_refused_in_a_sentence(option):
    with pytest.raises(PowerlabError, match="give a temperature in °C, such as 85") as caught:
        plan_from(words(**{option: "hot"}), device(), CAPABILITIES)
    assert str(caught.value).startswith(f"invalid --{option.replace('_', '-')} 'hot'")


def test_a_search_has_an_advantage_that_counts_and_goals():
    assert plan_from(words(), device(), CAPABILITIES).search_percent == 0
    plan = plan_from(words(search=True, search_epsilon=" 2.5 %", goal="efficiency, latency"), device(), CAPABILITIES)
    assert (plan.search_percent, plan.search_goals) == (2.5, ("efficiency", "latency"))
    assert plan_from(words(search=True), device(), CAPABILITIES).goals_to_search == SEARCH_GOALS == tuple(GOALS)


def test_proposed_modes_are_part_of_the_plan_and_marked():
    knobs = tuple(PowerMode(name=name) for name in ("cpu-max=1000000kHz", "gpu-max=500000000Hz"))
    capabilities = Capabilities(sources=(), total=None, modes=(*CAPABILITIES.modes, *knobs))
    plan = plan_from(words(search=True, propose_modes=True, modes="MAXN,cpu-max=1000000kHz"), device(), capabilities)
    assert plan.proposed_modes == ("gpu-max=500000000Hz", "cpu-max=1000000kHz+gpu-max=500000000Hz")
    assert plan.modes == ("MAXN", "cpu-max=1000000kHz", *plan.proposed_modes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"goal": "latency"}, "--goal says what to search for; add --search, or leave it out."),
        ({"search_epsilon": "5%"}, "--search-epsilon says when a search stops; add --search, or leave it out."),
        ({"propose_modes": True}, "--propose-modes adds many power modes, which takes a search; add --search."),
        ({"search": True, "search_epsilon": "0"}, "invalid --search-epsilon '0': give a percentage above 0."),
        ({"search": True, "search_epsilon": "much"}, "invalid --search-epsilon 'much': give a percentage, such as 1%."),
        (
            {"search": True, "propose_modes": True},
            "no power mode can be proposed: this device offers neither cores nor",
        ),
    ],
)
def test_words_of_a_search_that_make_no_sense_are_refused(changes, sentence):
    with pytest.raises(PowerlabError) as caught:
        plan_from(words(**changes), device(), CAPABILITIES)
    assert str(caught.value).startswith(sentence)
