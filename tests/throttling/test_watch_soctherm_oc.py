"""Jetson's over-current counters: what counts is what they counted meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability
from powerlab.throttling.soctherm_oc import SocthermOc, events_between

CHIP = "/sys/class/hwmon/hwmon4"


def chip(counts=(0, 0, 0), enabled=(1, 1, 1), folder=CHIP):
    files = {f"{folder}/name": "soctherm_oc"}
    for number, (count, throttles) in enumerate(zip(counts, enabled, strict=True), start=1):
        files[f"{folder}/oc{number}_event_cnt"] = count
        files[f"{folder}/oc{number}_throt_en"] = throttles
    return files


def watched(tree, before, after):
    watching = SocthermOc().start(tree(before))
    watching.sample()
    tree(after)
    return watching.finish()


def test_events_from_before_do_not_count(tree):
    assert watched(tree, chip((7, 8, 9)), chip((7, 8, 9))) == ()


def test_each_alarm_has_its_words_and_its_count(tree):
    voltage, average, instantaneous = watched(tree, chip((7, 8, 9)), chip((8, 10, 12)))
    assert voltage == (
        "the over-current protection slowed the module down 1 time: the supply voltage fell too low (oc1)"
    )
    assert "2 times: the average current was too high (oc2)" in average
    assert "3 times: the current was too high (oc3)" in instantaneous


def test_an_alarm_that_slows_nothing_down_says_nothing(tree):
    assert watched(tree, chip(enabled=(1, 0, 1)), chip((0, 5, 0), (1, 0, 1))) == ()


def test_an_alarm_of_which_nobody_says_whether_it_throttles_counts(tree):
    files = chip()
    del files[f"{CHIP}/oc3_throt_en"]
    assert len(watched(tree, files, {f"{CHIP}/oc3_event_cnt": 1})) == 1


def test_a_number_that_no_document_knows_has_words_too(tree):
    more = {f"{CHIP}/oc4_event_cnt": 0}
    (sentence,) = watched(tree, chip() | more, {f"{CHIP}/oc4_event_cnt": 2})
    assert "too much current (oc4)" in sentence


def test_the_chip_is_known_by_its_name_and_not_by_its_number(tree):
    assert len(watched(tree, chip(folder="/sys/class/hwmon/hwmon9"), {"/sys/class/hwmon/hwmon9/oc1_event_cnt": 4})) == 1
    other = chip(folder="/sys/class/hwmon/hwmon2") | {"/sys/class/hwmon/hwmon2/name": "ina3221"}
    assert watched(tree, other, {"/sys/class/hwmon/hwmon2/oc1_event_cnt": 4}) == ()


@pytest.mark.parametrize("text", ["", "many", "-", "99999999999999999999999"])
def test_a_counter_that_breaks_says_nothing(tree, text):
    assert watched(tree, chip(), {f"{CHIP}/oc1_event_cnt": text}) == ()
    assert watched(tree, chip() | {f"{CHIP}/oc1_event_cnt": text}, {f"{CHIP}/oc1_event_cnt": 3}) == ()


def test_a_chip_that_vanishes_says_nothing(tree):
    sysroot = tree(chip())
    watching = SocthermOc().start(sysroot)
    for path in sysroot.glob(f"{CHIP}/*"):
        sysroot.path(path).unlink()
    assert watching.finish() == ()


def test_the_probe_counts_alarms_and_names_those_that_slow_nothing(tree):
    assert SocthermOc().probe(tree({})).availability is Availability.ABSENT
    found = SocthermOc().probe(tree(chip(enabled=(1, 0, 0))))
    assert found.availability is Availability.AVAILABLE
    assert found.detail == "3 over-current counters; oc2, oc3 would slow nothing down"


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_events_are_the_difference_and_a_counter_that_went_back_began_again(start, more):
    assert events_between(start, start + more) == more
    assert events_between(start + more + 1, start) == start


@given(st.integers(), st.integers())
def test_there_is_never_a_negative_number_of_events(start, end):
    assert events_between(start, end) >= 0
