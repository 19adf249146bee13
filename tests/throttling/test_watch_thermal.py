"""Zones that pass their limit and cooling devices that begin to work, and the many that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Availability
from powerlab.throttling.thermal import Thermal, parse_celsius, slows

THERMAL = "/sys/class/thermal"


def zone(number=0, name="CPU-therm", temp=45000, trips=(("passive", 86000), ("critical", 90500)), **more):
    folder = f"{THERMAL}/thermal_zone{number}"
    files = {f"{folder}/type": name, f"{folder}/temp": temp}
    for index, (kind, limit) in enumerate(trips):
        files[f"{folder}/trip_point_{index}_type"] = kind
        files[f"{folder}/trip_point_{index}_temp"] = limit
    return files | {f"{folder}/{key}": value for key, value in more.items()}


def cooling(number=0, name="cpufreq-cpu0", state=0):
    folder = f"{THERMAL}/cooling_device{number}"
    return {f"{folder}/type": name, f"{folder}/cur_state": state, f"{folder}/max_state": 10}


def watched(tree, before, *after):
    """Watch a tree that is changed again and again, a second apart; return the sentences."""
    watching = Thermal().start(tree(before))
    for change in after:
        tree(change)
        for _ in range(5):
            watching.sample()
    return watching.finish()


def test_a_cool_device_says_nothing(tree):
    assert watched(tree, zone() | cooling(), zone(temp=85900)) == ()


def test_a_zone_that_passes_its_passive_trip_is_named_with_both_temperatures(tree):
    (sentence,) = watched(tree, zone(), zone(temp=87500), zone(temp=60000))
    assert "CPU-therm reached 87.5 °C" in sentence
    assert "from 86.0 °C on the kernel begins to slow the device down" in sentence


def test_a_zone_that_is_hot_from_the_start_counts_and_so_does_one_exactly_at_its_trip(tree):
    assert watched(tree, zone(temp=86000), zone(temp=40000))


def test_the_first_of_several_passive_trips_counts_and_passive_before_hot(tree):
    trips = (("hot", 50000), ("passive", 80000), ("passive", 70000), ("active", 30000), ("critical", 99000))
    (sentence,) = watched(tree, zone(trips=trips), zone(temp=71000, trips=trips))
    assert "from 70.0 °C" in sentence
    assert watched(tree, zone(trips=trips), zone(temp=69000, trips=trips)) == ()


def test_a_hot_trip_alone_is_called_hot(tree):
    trips = (("hot", 50000),)
    (sentence,) = watched(tree, zone(trips=trips), zone(temp=50500, trips=trips))
    assert sentence.endswith("from 50.0 °C on the kernel calls it hot")


@pytest.mark.parametrize(
    "trips", [(), (("active", 30000),), (("critical", 30000),), (("passive", 0), ("hot", -274000))]
)
def test_a_zone_without_a_slowing_trip_says_nothing(tree, trips):
    assert watched(tree, zone(trips=trips), zone(temp=95000, trips=trips)) == ()


def test_the_pmic_that_always_says_100_is_skipped(tree):
    assert watched(tree, zone(name="PMIC-Die", temp=100000)) == ()


@pytest.mark.parametrize("temp", [-256000, -273150, "", "N/A", 1 << 40])
def test_a_dead_sensor_says_nothing(tree, temp):
    assert watched(tree, zone(temp=temp)) == ()


def test_a_sensor_that_wakes_up_meanwhile_is_heard(tree):
    (sentence,) = watched(tree, zone(name="GPU-therm", temp=-256000), zone(name="GPU-therm", temp=91000))
    assert "GPU-therm reached 91.0 °C" in sentence


def test_thresholds_for_programs_are_no_limits(tree):
    assert watched(tree, zone(name="x86_pkg_temp", temp=90000)) == ()
    assert watched(tree, zone(temp=90000, policy="user_space")) == ()
    assert watched(tree, zone(temp=90000, policy="step_wise"))


def test_a_cooling_device_that_begins_to_work_is_named_with_its_highest_state(tree):
    (sentence,) = watched(tree, cooling(), cooling(state=4), cooling(state=1))
    assert "heat made the kernel slow the device down through cpufreq-cpu0" in sentence
    assert "up to 4" in sentence


def test_a_cooling_device_at_work_from_the_start_counts(tree):
    assert watched(tree, cooling(name="Processor", state=2))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cpufreq-cpu0", True),
        ("Processor", True),
        ("intel_powerclamp", True),
        ("devfreq-17000000.gv11b", True),
        ("17000000.ga10b", True),
        ("gpu-throttle-alert", True),
        ("cpu-balanced", True),
        ("pwm-fan", False),
        ("Fan", False),
        ("cpu-fan", False),
        ("iwlwifi_1", False),
        ("TCC Offset", False),
        ("LCD", False),
        ("hot-surface-alert", False),
        ("", False),
    ],
)
def test_fans_and_what_does_not_compute_slow_nothing_down(tree, name, expected):
    assert slows(name) == expected
    assert bool(watched(tree, cooling(name=name), cooling(name=name, state=3))) == expected


def test_powerclamps_word_for_off_is_no_work(tree):
    assert watched(tree, cooling(name="intel_powerclamp", state=-1)) == ()


def test_many_hot_zones_make_two_sentences(tree):
    hot = {}
    for number in range(9):
        hot |= zone(number, f"zone-{number}", temp=90000) | cooling(number, f"cpufreq-cpu{number}", 3)
    sentences = watched(tree, hot)
    assert len(sentences) == 4
    assert sentences[1].endswith("; 7 more zones are as hot")
    assert sentences[3].endswith("; 7 more cooling devices are at work")


def test_files_that_vanish_meanwhile_say_nothing(tree):
    sysroot = tree(zone() | cooling())
    watching = Thermal().start(sysroot)
    for path in (*sysroot.glob(f"{THERMAL}/*/temp"), *sysroot.glob(f"{THERMAL}/*/cur_state")):
        sysroot.path(path).unlink()
    watching.sample()
    assert watching.finish() == ()


def test_temperatures_are_looked_at_once_in_five_samples(tree):
    watching = Thermal().start(tree(zone()))
    tree(zone(temp=99000))
    for _ in range(4):
        watching.sample()
    tree(zone())
    assert watching.finish() == ()


def test_the_probe_counts_and_says_absent_where_there_is_nothing(tree):
    found = Thermal().probe(tree({}))
    assert (found.watch, found.availability) == ("thermal", Availability.ABSENT)
    found = Thermal().probe(tree(zone() | cooling() | cooling(1, "pwm-fan")))
    assert found.availability is Availability.AVAILABLE
    assert found.detail == "1 zone with a limit, 1 cooling device"


@given(st.text(max_size=20))
def test_any_text_is_a_temperature_of_this_world_or_none(text):
    celsius = parse_celsius(text)
    assert celsius is None or -60 < celsius < 200


@given(st.integers(-59_999, 199_999))
def test_a_temperature_is_read_in_thousandths(millidegrees):
    assert parse_celsius(f"{millidegrees}\n") == pytest.approx(millidegrees / 1000)
