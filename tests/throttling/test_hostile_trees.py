"""Whatever stands in the files, a watch answers its probe, watches and finishes without an exception."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.sysroot import Sysroot
from powerlab.throttling.registry import WATCHES, probe_watches

FILES = (
    "/proc/cpuinfo",
    "/proc/stat",
    "/dev/cpu/0/msr",
    "/sys/class/thermal/thermal_zone0/type",
    "/sys/class/thermal/thermal_zone0/temp",
    "/sys/class/thermal/thermal_zone0/trip_point_0_type",
    "/sys/class/thermal/thermal_zone0/trip_point_0_temp",
    "/sys/class/thermal/cooling_device0/type",
    "/sys/class/thermal/cooling_device0/cur_state",
    "/sys/class/hwmon/hwmon0/name",
    "/sys/class/hwmon/hwmon0/oc1_event_cnt",
    "/sys/class/hwmon/hwmon0/oc1_throt_en",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms",
    "/sys/devices/system/cpu/cpufreq/policy0/affected_cpus",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq",
    "/sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq",
    "/sys/firmware/acpi/platform_profile",
)
LIKELY = st.sampled_from(
    [
        "0",
        "45000",
        "99999999",
        "-256000",
        "passive",
        "CPU-therm",
        "cpufreq-cpu0",
        "soctherm_oc",
        "schedutil",
        "cpu0 1 2 3 4 5 6 7 8",
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n",
    ]
)
ANYTHING = st.one_of(LIKELY, st.text(max_size=30)).map(lambda text: text.encode("utf-8", "replace"))
CONTENTS = st.dictionaries(st.sampled_from(FILES), st.one_of(ANYTHING, st.binary(max_size=30)))


def put(sysroot: Sysroot, contents: dict[str, bytes]) -> None:
    for name, raw in contents.items():
        path = sysroot.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


@settings(max_examples=150, deadline=None)
@given(CONTENTS, CONTENTS)
def test_no_tree_breaks_a_watch(before, after):
    with tempfile.TemporaryDirectory() as folder:
        sysroot = Sysroot(Path(folder))
        put(sysroot, before)
        assert all(probe.detail for probe in probe_watches(sysroot))
        watchings = [watch.start(sysroot) for watch in WATCHES]
        put(sysroot, after)
        for _ in range(6):
            for watching in watchings:
                watching.sample()
        for watching in watchings:
            assert all(isinstance(sentence, str) and sentence for sentence in watching.finish())


@pytest.mark.parametrize("watch", WATCHES, ids=lambda watch: watch.name)
def test_directories_where_files_should_be_are_no_exception(watch, tree):
    sysroot = tree(dict.fromkeys(FILES))
    assert watch.probe(sysroot).detail
    watching = watch.start(sysroot)
    watching.sample()
    assert watching.finish() == ()


@pytest.mark.parametrize("watch", WATCHES, ids=lambda watch: watch.name)
def test_files_that_may_not_be_read_are_no_exception(watch, tree, deny):
    sysroot = tree(dict.fromkeys(FILES, "1"))
    deny("")
    assert watch.probe(sysroot).detail
    watching = watch.start(sysroot)
    watching.sample()
    assert watching.finish() == ()
