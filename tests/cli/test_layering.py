"""What ``powerlab layers`` makes of its words and of what was measured."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from layer_profiles import layer_profile
from powerlab.cli.commands.layers import measure
from powerlab.cli.commands.layers.measure import layers_document
from powerlab.cli.commands.layers.table import layer_table
from powerlab.domain.mode import CURRENT_MODE, PowerMode
from powerlab.domain.power import RailQuantity
from powerlab.domain.run import Finding, Verdict
from powerlab.measure.recording.rails import Meter
from powerlab.sysroot import Sysroot
from server_examples import capabilities, device
from tests.measure.true_power import rail_of

INFERS = {"workload": "inference", "optimizer": None}
VOID = Finding(rule="power-gap", verdict=Verdict.VOID, detail="a gap")


def words(**changes: object) -> argparse.Namespace:
    fields = {"model": "resnet50", "threads": None, "batch": 1, "modes": "current", "seconds_per_layer": None}
    return argparse.Namespace(**{**fields, "idle": 3.0, "seed": 0, "processor": "cpu", **INFERS, **changes})


def able(*modes: PowerMode):
    return replace(capabilities(), modes=(CURRENT_MODE, *modes))


def test_without_a_wish_all_cores_compute():
    assert measure._plan(words(), device(cores=6), able()).threads == (6,)


def test_a_mode_with_fewer_cores_is_given_no_more_threads_than_it_has():
    small = PowerMode(name="SMALL", online_cores=2)
    assert measure._plan(words(modes="current,SMALL"), device(cores=6), able(small)).threads == (2,)


def test_all_modes_are_those_that_need_no_reboot():
    reboot = PowerMode(name="REBOOT", requires_reboot=True)
    plan = measure._plan(words(modes="all"), device(), able(PowerMode(name="SLOW"), reboot))
    assert plan.modes == (CURRENT_MODE.name, "SLOW")
    assert len(plan.points()) == 2


def test_words_become_the_plan():
    plan = measure._plan(words(threads=3, batch=8, seconds_per_layer=0.5, idle=1.0, seed=9), device(), able())
    assert (plan.threads, plan.batch_sizes, plan.duration_s, plan.idle_s, plan.seed) == ((3,), (8,), 0.5, 1.0, 9)


def meter_of(*periods_s: float) -> Meter:
    rails = tuple(
        rail_of(RailQuantity.POWER, name=f"r{number}", update_period_s=period)
        for number, period in enumerate(periods_s)
    )
    return Meter(sysroot=Sysroot(), total=None, rails=rails, sample_period_s=0.01)


@pytest.mark.parametrize(
    ("periods_s", "window_s"), [((), 2.0), ((0.0,), 2.0), ((0.001, 0.01), 2.0), ((0.1, 0.25), 5.3), ((1.0,), 21.0)]
)
def test_a_window_suits_the_slowest_sensor(periods_s, window_s, capsys):
    plan = measure._plan(words(), device(), able())
    assert measure._window_s(words(), plan, meter_of(*periods_s)) == window_s
    assert capsys.readouterr().err == ""


def test_a_window_that_is_too_short_is_kept_and_said_to_be(capsys):
    asked = words(seconds_per_layer=0.5)
    plan = measure._plan(asked, device(), able())
    assert measure._window_s(asked, plan, meter_of(0.1)) == 0.5
    assert "every 0.1 s, so a layer wants 2.1 s" in capsys.readouterr().err


def test_a_window_that_is_long_enough_is_nobodys_concern(capsys):
    asked = words(seconds_per_layer=3.0)
    plan = measure._plan(asked, device(), able())
    assert measure._window_s(asked, plan, meter_of(0.1)) == 3.0
    assert capsys.readouterr().err == ""


def test_the_document_has_the_roofline_beside_each_profile():
    document = layers_document([layer_profile(), layer_profile(power=None)])
    first, second = document["profiles"]
    assert [point["index"] for point in first["roofline"]] == [0, 1, 2, 3]
    assert second["energy_ratio"] is None
    assert first["layers"][1]["energy"]["provenance"] == "simulated"


@pytest.mark.parametrize(
    ("profile", "usable"),
    [
        (layer_profile(), True),
        (layer_profile(power=None), True),
        (replace(layer_profile(), findings=(VOID,)), False),
        (replace(layer_profile(), layers=(replace(layer_profile().layers[0], findings=(VOID,)),)), False),
    ],
    ids=["good", "no power", "void profile", "void layer"],
)
def test_figures_that_may_not_be_used_make_the_answer_incomplete(profile, usable):
    assert measure._usable(profile) is usable


@pytest.mark.parametrize(("seconds", "said"), [(12.4, "12 s"), (89.0, "89 s"), (150.0, "2.5 min")])
def test_durations_are_said_as_people_say_them(seconds, said):
    assert measure._duration(seconds) == said


def test_training_names_its_optimizer_in_plan_document_and_title():
    plan = measure._plan(words(workload="train"), device(cores=6), able())
    assert (plan.workload, plan.optimizers) == ("train", ("sgd",))
    profile = layer_profile()
    assert layers_document([profile], ("adam",))["optimizer"] == "adam"
    assert "optimizer" not in layers_document([profile])
    assert str(layer_table(profile, ("adam",)).title).endswith(", trained by adam")
