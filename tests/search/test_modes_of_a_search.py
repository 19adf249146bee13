"""What a search reads from the names of power modes, and which modes it proposes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, PowerMode
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Processor
from powerlab.search.prior import LATENCY, prior_of
from powerlab.search.proposals import MOST_PROPOSED, proposed_modes
from powerlab.search.space import space_of
from powerlab.search.traits import traits_of


def mode(name: str, *, reboot: bool = False) -> PowerMode:
    return PowerMode(name=name, origin=ModeOrigin.INVENTED, requires_reboot=reboot)


@pytest.mark.parametrize(
    ("name", "numbers", "label"),
    [
        ("current", {}, ""),
        ("cores=4", {"cores": 4.0}, ""),
        ("cores=4+cpu-max=1190400kHz", {"cores": 4.0, "cpu-max": 1190400.0}, ""),
        ("cpu-quota=1.5", {"cpu-quota": 1.5}, ""),
        ("governor=powersave", {}, "governor=powersave"),
        ("MAXN", {}, "MAXN"),
        ("MODE_15W", {"cores": 4.0, "cpu-max": 1200000.0}, ""),
        ("MODE_15W+cores=2", {"cores": 2.0, "cpu-max": 1200000.0}, ""),
        ("cores=2+MODE_15W", {"cores": 2.0, "cpu-max": 1200000.0}, ""),
    ],
)
def test_a_modes_name_says_its_numbers_and_the_rest_is_a_label(name, numbers, label):
    found = traits_of(name, {"MODE_15W": {"cores": 4.0, "cpu-max": 1200000.0}})
    assert (dict(found.numbers), found.label) == (numbers, label)


@given(st.text(alphabet="ab=+-.0123456789kHz ", max_size=30))
def test_no_name_is_too_strange(name):
    assert all(value > 0 for value in traits_of(name, {}).numbers.values())


def test_twice_the_threads_are_one_octave_and_an_uncapped_clock_lies_above_all_caps():
    plan = SweepPlan(models=("m",), threads=(1, 2), modes=("current", "cpu-max=500000kHz", "cpu-max=1000000kHz"))
    space = space_of(plan.points(), {})
    column = dict(zip(space.names, space.numbers.T, strict=True))
    assert column["threads"].max() - column["threads"].min() == pytest.approx(1.0)
    clocks = {point.mode: clock for point, clock in zip(space.points, column["cpu-max"], strict=True)}
    assert clocks["cpu-max=1000000kHz"] - clocks["cpu-max=500000kHz"] == pytest.approx(1.0)
    assert clocks["current"] > clocks["cpu-max=1000000kHz"]


def test_a_vendors_mode_without_caps_is_no_twin_of_the_current_settings():
    plan = SweepPlan(models=("m",), threads=(1,), modes=("current", "MAXN", "15W", "cpu-max=500000kHz"))
    space = space_of(plan.points(), {"MAXN": {}, "15W": {"cpu-max": 900000.0}})
    labels = {point.mode: tuple(row) for point, row in zip(space.points, space.labels, strict=True)}
    assert labels["MAXN"] == labels["15W"] != labels["current"] == labels["cpu-max=500000kHz"]


OFFERED = (
    CURRENT_MODE,
    mode("MAXN"),
    mode("cores=1"),
    mode("cores=4"),
    mode("governor=powersave"),
    mode("cpu-max=500000kHz"),
    mode("cpu-max=900000kHz", reboot=True),
    mode("gpu-max=306000000Hz"),
    mode("cpu-quota=2"),
    mode("cores=4+gpu-max=306000000Hz"),
)


def test_proposals_combine_cores_and_clocks_that_the_device_offers():
    assert set(proposed_modes(OFFERED, most_threads=2)) == {
        "cores=4",
        "cpu-max=500000kHz",
        "gpu-max=306000000Hz",
        "cores=4+cpu-max=500000kHz",
        "cores=4+gpu-max=306000000Hz",
        "cpu-max=500000kHz+gpu-max=306000000Hz",
        "cores=4+cpu-max=500000kHz+gpu-max=306000000Hz",
    }


def test_on_a_card_its_own_clocks_and_limits_are_proposed():
    offered = (*OFFERED, mode("gpu-limit=200W"), mode("gpu-memory-lock=5001MHz"), mode("amd-gpu-level=low"))
    on_card = set(proposed_modes(offered, 1, (Processor.GPU,)))
    assert {"gpu-limit=200W", "gpu-max=306000000Hz+gpu-limit=200W+gpu-memory-lock=5001MHz"} <= on_card
    assert not any("cores" in name or "cpu-max" in name or "level" in name for name in on_card)
    both = set(proposed_modes(offered, 1, (Processor.GPU, Processor.CPU)))
    assert both > on_card
    assert "cores=4+gpu-limit=200W" in both


def test_on_a_card_its_limit_is_expected_to_cost_time():
    plan = SweepPlan(
        models=("resnet50",), threads=(1,), modes=("gpu-limit=100W", "gpu-limit=200W"), processors=(Processor.GPU,)
    )
    (name,) = space_of(plan.points(), {}).names
    assert space_of(plan.points(), {}).on_gpu
    slopes = [prior_of(LATENCY, [name], on_gpu).mean[0] for on_gpu in (True, False)]
    assert slopes[0] < slopes[1] == 0.0


def test_a_device_without_knobs_is_proposed_nothing_and_no_device_too_much():
    assert proposed_modes((CURRENT_MODE,), 1) == ()
    clocks = [mode(f"{key}={value}kHz") for key in ("cpu-max", "gpu-max", "emc-max") for value in range(1, 20)]
    assert len(proposed_modes(clocks, 1)) == MOST_PROPOSED
