"""Letting a device come to rest: the first run in a mode waits for a temperature that lasts, the others for that."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.measure.steady import cool_down as module
from powerlab.measure.steady.cool_down import TOLERANCE_C, Start, cool_down
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree

Course = Callable[[float], float | None]
ROOT = Sysroot()


@pytest.fixture
def rested(monkeypatch) -> Callable[..., Start]:
    """Let a device whose temperature follows a course come to rest, on a clock that only waiting moves."""

    def run(course: Course, like_c: float | None, longest_s: float) -> Start:
        now = SimpleNamespace(s=0.0)

        def sleep(seconds: float) -> None:
            assert seconds > 0
            now.s += seconds

        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now.s, sleep=sleep))
        monkeypatch.setattr(module, "Zones", lambda _: SimpleNamespace(hottest_c=lambda: course(now.s)))
        start = cool_down(ROOT, like_c, longest_s)
        assert start.waited_s == pytest.approx(now.s)
        return start

    return run


def approaching(start_c: float, end_c: float, tau_s: float) -> Course:
    return lambda second: end_c + (start_c - end_c) * math.exp(-second / tau_s)


@pytest.mark.parametrize("like_c", [50.0, 50.0 - TOLERANCE_C, 80.0])
def test_a_device_as_cool_or_cooler_does_not_wait(rested, like_c):
    assert rested(lambda _: 50.0, like_c, 100.0) == Start(celsius=50.0)


@pytest.mark.parametrize("like_c", [None, 20.0])
def test_a_plan_without_cool_down_neither_waits_nor_complains(rested, like_c):
    assert rested(lambda second: 50.0 - second, like_c, 0.0) == Start(celsius=50.0)


@pytest.mark.parametrize("like_c", [None, 20.0])
def test_a_device_without_zones_does_not_wait(tmp_path, like_c):
    assert cool_down(Sysroot(tmp_path), like_c, 100.0) == Start(celsius=None)


@pytest.mark.parametrize("tau_s", [5.0, 20.0, 60.0])
def test_a_run_waits_until_the_hottest_zone_is_back(rested, tau_s):
    start = rested(approaching(70.0, 40.0, tau_s), 40.0, 600.0)
    assert start.celsius == pytest.approx(41.0, abs=0.1 * 30 / tau_s)
    assert start.waited_s == pytest.approx(tau_s * math.log(30), abs=0.6)
    assert start.sentences == ()


def test_what_was_not_reached_is_said(rested):
    start = rested(approaching(70.0, 40.0, 300.0), 40.0, 60.0)
    assert start.waited_s == pytest.approx(60.0)
    assert start.sentences == (
        f"the run began at {start.celsius:.1f} °C after a cool-down of 60 s, and the first one in its mode at 40.0 °C "
        "(limit 1 °C more)",
    )


@pytest.mark.parametrize(("from_c", "to_c"), [(30.0, 38.0), (60.0, 38.0)])
@pytest.mark.parametrize("tau_s", [5.0, 20.0, 60.0])
def test_the_first_run_waits_for_a_temperature_that_lasts(rested, from_c, to_c, tau_s):
    """A board that was just switched on warms up by itself, one that comes from another mode cools down."""
    start = rested(approaching(from_c, to_c, tau_s), None, 600.0)
    assert start.sentences == ()
    assert start.celsius == pytest.approx(to_c, abs=TOLERANCE_C)
    assert 150.0 <= start.waited_s < 600.0


def test_a_device_at_rest_waits_a_quarter_of_the_time_at_most_and_says_nothing(rested):
    assert rested(lambda _: 38.0, None, 120.0).waited_s == pytest.approx(30.0, abs=0.6)


@pytest.mark.parametrize(("rate", "words"), [(0.1, "warming up"), (-0.1, "cooling down")])
def test_a_device_that_does_not_come_to_rest_says_how_far_it_goes(rested, rate, words):
    start = rested(lambda second: 50.0 + rate * second, None, 60.0)
    assert start.waited_s == pytest.approx(60.0)
    assert start.sentences == (
        f"the first run in its mode began at {start.celsius:.1f} °C, while the device went on {words} by 6.0 °C in "
        "60 s (limit 1 °C)",
    )


def test_noisy_zones_are_waited_for_and_not_complained_of(rested):
    rng = np.random.default_rng(1)
    assert rested(lambda _: 40.0 + 3.0 * rng.normal(), None, 60.0).sentences == ()


def test_zones_that_vanish_meanwhile_end_in_what_was_last_seen(rested):
    start = rested(lambda second: 50.0 if second < 5 else None, 40.0, 20.0)
    assert start.celsius == 50.0
    assert len(start.sentences) == 1


@given(
    from_c=st.floats(-20, 110),
    to_c=st.floats(-20, 110),
    tau_s=st.floats(1, 500),
    like_c=st.none() | st.floats(-20, 110),
    longest_s=st.floats(0.1, 600),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
def test_it_never_waits_longer_than_it_may_and_complains_only_with_a_reason(  # noqa: PLR0917
    rested, from_c, to_c, tau_s, like_c, longest_s
):
    start = rested(approaching(from_c, to_c, tau_s), like_c, longest_s)
    assert start.waited_s <= longest_s + 1e-6
    if like_c is not None:
        assert bool(start.sentences) == (start.celsius > like_c + TOLERANCE_C)
    elif start.sentences:
        assert start.waited_s == pytest.approx(longest_s)


def test_real_zones_are_read_while_it_waits(tmp_path):
    tree = ZoneTree(tmp_path, ("CPU-therm", "50000"), ("GPU-therm", "30000"))
    cooling = threading.Timer(0.2, tree.heat, (0, 40.5))
    cooling.start()
    begin_s = time.monotonic()
    start = cool_down(tree.sysroot, 40.0, 60.0, look_period_s=0.02)
    cooling.join()
    assert start.celsius == 40.5
    assert 0.1 < start.waited_s <= time.monotonic() - begin_s
    assert start.sentences == ()
