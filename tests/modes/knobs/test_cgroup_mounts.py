"""Where control groups are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.cgroups import Mounts, mounts, own_group, parse_mounts
from powerlab.sysroot import Sysroot

Make = Callable[[dict[str, str]], Sysroot]
JETPACK_4 = """\
tmpfs /sys/fs/cgroup tmpfs ro,nosuid,nodev,noexec,mode=755 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,nosuid,nodev,noexec,relatime,xattr,name=systemd 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,nosuid,nodev,noexec,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
"""
UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (JETPACK_4, Mounts(version_1="/sys/fs/cgroup/cpu,cpuacct", version_2="/sys/fs/cgroup/unified")),
        (UNIFIED, Mounts(version_2="/sys/fs/cgroup")),
        ("cgroup /my\\040groups cgroup rw,cpu 0 0\n", Mounts(version_1="/my groups")),
        ("cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0\n", Mounts()),
        ("cpu /mnt ext4 rw,cpu 0 0\ncgroup2\n", Mounts()),
        (UNIFIED + "cgroup2 /elsewhere cgroup2 rw 0 0\n", Mounts(version_2="/sys/fs/cgroup")),
        ("", Mounts()),
    ],
    ids=["both", "version 2", "space", "another controller", "no groups", "twice", "nothing"],
)
def test_mounts_are_told_apart(text: str, found: Mounts) -> None:
    assert parse_mounts(text) == found


@given(text=st.text())
def test_any_text_is_read(text: str) -> None:
    found = parse_mounts(text)
    assert found.version_1 is None or found.version_1
    assert found.version_2 is None or found.version_2


@given(place=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_any_place_comes_back_as_it_is_called(place: str) -> None:
    written = "".join(f"\\{ord(char):03o}" if char in " \\" else char for char in place)
    assert parse_mounts(f"cgroup /{written} cgroup rw,cpu 0 0").version_1 == f"/{place}"


def test_a_board_that_lists_no_mounts_has_them_at_the_usual_places(make_tree: Make) -> None:
    tree = make_tree({"/sys/fs/cgroup/cgroup.controllers": "cpu", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"})
    assert mounts(tree) == Mounts(version_1="/sys/fs/cgroup/cpu", version_2="/sys/fs/cgroup")
    tree.path("/proc/self").mkdir(parents=True)
    tree.path("/proc/self/mounts").write_text("")
    assert mounts(tree) == Mounts()


@pytest.mark.parametrize(
    ("text", "version_1", "version_2"),
    [
        ("4:cpu,cpuacct:/a/b\n1:name=systemd:/c\n0::/d:e\n", "/a/b", "/d:e"),
        ("0::/d", "/", "/d"),
        ("4:cpuset:/a\n", "/", "/"),
        ("4:cpu:/../../a\n0::/..\n", "/", "/"),
        ("damaged\n::\n", "/", ""),
    ],
)
def test_the_own_group_is_told_for_each_version(make_tree: Make, text: str, version_1: str, version_2: str) -> None:
    tree = make_tree({"/proc/self/cgroup": text})
    assert (own_group(tree, "cpu"), own_group(tree, "")) == (version_1, version_2)


def test_without_a_list_the_own_group_is_the_top(make_tree: Make) -> None:
    assert own_group(make_tree({}), "cpu") == "/"
