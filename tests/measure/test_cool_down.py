"""Waiting for a device to be as cool as it was."""

from __future__ import annotations

import threading
import time

import pytest

from powerlab.measure.cool_down import TOLERANCE_C, Start, cool_down
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree


@pytest.fixture
def tree(tmp_path) -> ZoneTree:
    return ZoneTree(tmp_path, ("CPU-therm", "50000"), ("GPU-therm", "30000"))


def test_the_first_run_sets_what_the_others_come_down_to(tree):
    assert cool_down(tree.sysroot, None, 100.0) == Start(celsius=50.0)


@pytest.mark.parametrize("like_c", [50.0, 50.0 - TOLERANCE_C, 80.0])
def test_a_device_as_cool_or_cooler_does_not_wait(tree, like_c):
    assert cool_down(tree.sysroot, like_c, 100.0) == Start(celsius=50.0)


def test_a_plan_without_cool_down_neither_waits_nor_complains(tree):
    assert cool_down(tree.sysroot, 20.0, 0.0) == Start(celsius=50.0)


def test_a_device_without_zones_does_not_wait(tmp_path):
    assert cool_down(Sysroot(tmp_path), 20.0, 100.0) == Start(celsius=None)


def test_it_waits_until_the_hottest_zone_is_back(tree):
    cooling = threading.Timer(0.2, tree.heat, (0, 40.5))
    cooling.start()
    begin_s = time.monotonic()
    start = cool_down(tree.sysroot, 40.0, 60.0, look_period_s=0.02)
    cooling.join()
    assert start.celsius == 40.5
    assert 0.1 < start.waited_s <= time.monotonic() - begin_s
    assert start.sentences == ()


def test_what_was_not_reached_is_said(tree):
    start = cool_down(tree.sysroot, 40.0, 0.1, look_period_s=0.02)
    assert start.celsius == 50.0
    assert start.waited_s >= 0.1
    assert start.sentences == (
        "the run began at 50.0 °C after a cool-down of 0 s, and the first one in its mode at 40.0 °C (up to 1 °C more "
        "may be)",
    )


def test_zones_that_vanish_meanwhile_end_in_what_was_last_seen(tree):
    def vanish() -> None:
        tree.remove(0)
        tree.remove(1)

    gone = threading.Timer(0.05, vanish)
    gone.start()
    start = cool_down(tree.sysroot, 40.0, 0.3, look_period_s=0.02)
    gone.join()
    assert start.celsius == 50.0
    assert len(start.sentences) == 1
