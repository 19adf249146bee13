"""What the kernel's files say, also when they say odd things."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.processor import cpu_model, parse_cpu_model
from powerlab.cgroups import parse_cpu_max, quota_cores
from powerlab.sweep.facts import (
    UNKNOWN,
    kernel_release,
    memory_bytes,
    parse_core_count,
    parse_memory_bytes,
    usable_cores,
)
from powerlab.sysroot import Sysroot

CORES = "/sys/devices/system/cpu/"


def tree(base: Path, files: dict[str, str]) -> Sysroot:
    for name, text in files.items():
        path = base / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Sysroot(base)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\n\nprocessor\t: 1\nmodel name\t: other\n", "Intel(R) Xeon(R)"),
        ("processor : 0\nCPU implementer\t: 0x4e\nCPU part\t: 0x004\n", "implementer 0x4e part 0x004"),
        ("processor : 0\nHardware : BCM2835\n", "BCM2835"),
        ("", UNKNOWN),
    ],
)
def test_a_processor_has_a_name(text, name):
    assert parse_cpu_model(text) == name


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000\n", None), ("150000 100000", 1.5), ("50000 100000\n", 0.5), ("", None), ("1 0", None)],
)
def test_a_quota_is_in_cores(text, cores):
    assert parse_cpu_max(text) == cores


@given(text=st.text())
def test_parsers_answer_whatever_they_read(text):
    assert parse_cpu_model(text)
    assert parse_memory_bytes(text) >= 0
    assert parse_cpu_max(text) is None or parse_cpu_max(text) >= 0


def test_the_tightest_quota_of_the_groups_above_counts(tmp_path):
    root = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/batch/job\n",
            "/sys/fs/cgroup/batch/cpu.max": "150000 100000\n",
            "/sys/fs/cgroup/batch/job/cpu.max": "max 100000\n",
        },
    )
    assert quota_cores(root) == 1.5
    assert usable_cores(root) == 1


@pytest.mark.parametrize(("quota", "cores"), [("250000", 2.5), ("-1", None)])
@pytest.mark.parametrize("group", ["", "docker/5a1f/"])
def test_a_container_on_jetpack_4_has_a_quota_of_version_1(tmp_path, quota, cores, group):
    """Inside the container its own group lies at the top, whatever /proc/self/cgroup says."""
    root = tree(
        tmp_path,
        {
            "/proc/self/cgroup": "11:cpuset:/docker/5a1f\n4:cpu,cpuacct:/docker/5a1f\n0::/system.slice\n",
            f"/sys/fs/cgroup/cpu/{group}cpu.cfs_quota_us": f"{quota}\n",
            f"/sys/fs/cgroup/cpu/{group}cpu.cfs_period_us": "100000\n",
        },
    )
    assert quota_cores(root) == cores


def test_without_a_quota_the_mask_counts(tmp_path):
    assert usable_cores(Sysroot(tmp_path)) == len(os.sched_getaffinity(0))


def test_a_quota_below_one_core_still_leaves_one(tmp_path):
    assert usable_cores(tree(tmp_path, {"/sys/fs/cgroup/cpu.max": "20000 100000"})) == 1


def test_facts_of_a_tree(tmp_path):
    root = tree(
        tmp_path,
        {
            "/proc/meminfo": "MemTotal:       16096020 kB\nMemFree: 1 kB\n",
            "/proc/device-tree/model": "Jetson-AGX\0",
            "/proc/sys/kernel/osrelease": "4.9.337-tegra\n",
        },
    )
    assert memory_bytes(root) == 16096020 * 1024
    assert cpu_model(root) == "Jetson-AGX"
    assert kernel_release(root) == "4.9.337-tegra"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0-7\n", 8),
        ("0", 1),
        ("0-1,4-5,7\n", 5),
        ("0,1,2,3", 4),
        ("", None),
        ("none", None),
        ("3-1", None),
        ("0-", None),
    ],
)
def test_a_list_of_cores_is_counted(text, count):
    assert parse_core_count(text) == count


@given(cores=st.sets(st.integers(0, 1023), min_size=1))
def test_any_list_of_cores_is_counted(cores):
    assert parse_core_count(",".join(str(core) for core in sorted(cores)) + "\n") == len(cores)


@given(text=st.text())
def test_no_list_of_cores_makes_the_count_fail(text):
    count = parse_core_count(text)
    assert count is None or count >= 1


def test_cores_that_a_power_mode_took_off_line_can_be_had_in_another_mode(tmp_path):
    """A Jetson booted in a mode of few cores: the affinity mask holds the cores now online, and grows with the mode."""
    mask = len(os.sched_getaffinity(0))
    root = tree(tmp_path, {CORES + "online": f"0-{mask - 1}\n", CORES + "present": f"0-{mask + 3}\n"})
    assert usable_cores(root) == mask + 4


def test_a_mask_that_somebody_narrowed_stays_narrow(tmp_path):
    mask = len(os.sched_getaffinity(0))
    root = tree(tmp_path, {CORES + "online": f"0-{mask}\n", CORES + "present": f"0-{mask + 3}\n"})
    assert usable_cores(root) == mask


def test_a_quota_counts_also_while_cores_are_off_line(tmp_path):
    mask = len(os.sched_getaffinity(0))
    root = tree(
        tmp_path,
        {
            CORES + "online": f"0-{mask - 1}\n",
            CORES + "present": f"0-{mask + 3}\n",
            "/sys/fs/cgroup/cpu.max": "100000 100000",
        },
    )
    assert usable_cores(root) == 1


def test_a_quota_is_found_wherever_the_groups_are_mounted(tmp_path):
    root = tree(
        tmp_path,
        {
            "/proc/self/mounts": "cgroup2 /run/groups/unified cgroup2 rw 0 0\ncgroup /run/groups/c cgroup rw,cpu 0 0\n",
            "/proc/self/cgroup": "4:cpu:/batch\n0::/batch\n",
            "/run/groups/c/batch/cpu.cfs_quota_us": "150000\n",
            "/run/groups/c/batch/cpu.cfs_period_us": "100000\n",
            "/run/groups/c/batch/powerlab/cpu.cfs_quota_us": "10000\n",
            "/run/groups/c/batch/powerlab/cpu.cfs_period_us": "100000\n",
        },
    )
    assert quota_cores(root) == 1.5, "the worker's own group does not count"
