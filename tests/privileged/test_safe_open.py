from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot
from powerlab_helper import safe_open
from powerlab_helper.safe_open import check_trusted, is_plain, open_listed

COUNTER = "/sys/class/powercap/intel-rapl:0/energy_uj"


def text_of(sysroot: Sysroot, path: str) -> str:
    with open(open_listed(sysroot, path, os.O_RDONLY), encoding="utf-8") as file:
        return file.read().strip()


def link(sysroot: Sysroot, path: str, target: str | Path) -> None:
    sysroot.path(path).parent.mkdir(parents=True, exist_ok=True)
    sysroot.path(path).symlink_to(target)


def test_the_links_that_sysfs_is_made_of_are_followed(tree: Sysroot) -> None:
    assert text_of(tree, COUNTER) == "123456789"
    link(tree, "/sys/devices/system/cpu/cpu0/cpufreq", "../cpufreq/policy0")
    assert text_of(tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") == "powersave"


@pytest.mark.parametrize("target", ["/etc", "../../../etc", "../../.."])
def test_a_link_cannot_lead_out_of_the_tree_of_sysfs(tree: Sysroot, target: str) -> None:
    directory = tree.path("/etc")
    (directory / "energy_uj").write_text("1\n")
    link(tree, "/sys/class/powercap/intel-rapl:1", directory if target == "/etc" else target)
    (tree.base / "energy_uj").write_text("1\n")
    with pytest.raises(PowerlabError, match="outside of what"):
        text_of(tree, "/sys/class/powercap/intel-rapl:1/energy_uj")


def test_a_file_that_is_itself_a_link_is_not_another_file(tree: Sysroot) -> None:
    link(tree, "/sys/class/hwmon/hwmon0/power1_input", "../../../devices/virtual/powercap/intel-rapl/intel-rapl:0/name")
    with pytest.raises(PowerlabError, match="outside of what"):
        text_of(tree, "/sys/class/hwmon/hwmon0/power1_input")


def test_a_link_put_there_after_the_look_is_not_followed(tree: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody exchanged a directory between resolving and opening."""
    real_walk = safe_open._walk
    outside = tree.path("/etc/intel-rapl:0")
    outside.mkdir()
    (outside / "energy_uj").write_text("666\n")
    zone = tree.path("/sys/devices/virtual/powercap/intel-rapl/intel-rapl:0")

    def exchange_then_walk(base: str, parts: list[str]) -> int:
        zone.rename(zone.with_name("old"))
        zone.symlink_to(outside)
        return real_walk(base, parts)

    monkeypatch.setattr(safe_open, "_walk", exchange_then_walk)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        text_of(tree, COUNTER)
    assert set(os.listdir("/proc/self/fd")) == before


def test_only_plain_files_are_opened(tree: Sysroot) -> None:
    path = tree.path("/sys/class/hwmon/hwmon0")
    path.mkdir(parents=True)
    os.mkfifo(path / "power1_input")
    (path / "power2_input").mkdir()
    for name in ("power1_input", "power2_input"):  # a pipe would block whoever opens it
        with pytest.raises(PowerlabError, match="not a regular file"):
            open_listed(tree, f"/sys/class/hwmon/hwmon0/{name}", os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        open_listed(tree, "/sys/class/hwmon/hwmon0/power3_input", os.O_RDONLY)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/sys", "sys/a/b", "/sys//a", "/sys/./a", "/sys/../etc/a", "/sys/a/", "/sys/a\n", "/sys/a\0b", "/sys/ä"],
)
def test_a_path_must_mean_what_it_says(tree: Sysroot, path: str) -> None:
    with pytest.raises(PowerlabError, match="not a plain path"):
        open_listed(tree, path, os.O_RDONLY)


@given(st.text(max_size=60) | st.lists(st.sampled_from(["a", "..", ".", "", "sys"]), max_size=6).map("/".join))
def test_a_plain_path_stays_where_it_begins(path: str) -> None:
    if is_plain(path):
        assert os.path.normpath(path) == path
        assert path.startswith("/")


def test_a_program_that_others_can_write_is_not_trusted(tree: Sysroot) -> None:
    program = tree.path("/usr/sbin/nvpmodel")
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    check_trusted(tree, "/usr/sbin/nvpmodel")
    check_trusted(tree, "/usr/sbin/not-there-yet")
    program.chmod(0o775)
    with pytest.raises(PowerlabError, match="others than root can write"):
        check_trusted(tree, "/usr/sbin/nvpmodel")
    program.chmod(0o755)
    program.parent.chmod(0o777)
    for name in ("nvpmodel", "not-there-yet"):
        with pytest.raises(PowerlabError, match="chmod go-w"):
            check_trusted(tree, f"/usr/sbin/{name}")
