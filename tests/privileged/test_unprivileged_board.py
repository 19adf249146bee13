"""A whole simulated Jetson in the hands of a user without rights: every kind of mode through the helper, and back."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.modes.controller import ModeController
from powerlab.sysroot import Sysroot

NOBODY = 65534
Helper = subprocess.Popen[str]
Serving = Callable[[int], AbstractContextManager[Helper]]
AsNobody = Callable[[Callable[[], object]], str]


@pytest.fixture
def tree() -> Iterator[Sysroot]:
    """A board whose files belong to root, in a place every user can come to."""
    folder = Path(tempfile.mkdtemp(prefix="powerlab-privileged-"))
    folder.chmod(0o755)
    create_tree("jetson-agx-xavier", folder / "board")
    (folder / "board/run/lock").chmod(0o1777)
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    yield Sysroot(folder / "board")
    shutil.rmtree(folder)


def content(tree: Sysroot) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for path in sorted(tree.base.rglob("*"))
        if path.is_file() and "/run/" not in str(path)
    }


@pytest.mark.parametrize(
    "case",
    [
        ("MODE_15W", "/var/lib/nvpmodel/status", "pmode:0002"),
        ("cores=4", "/sys/devices/system/cpu/cpu7/online", "0"),
        ("governor=powersave", "/sys/devices/system/cpu/cpufreq/policy2/scaling_governor", "powersave"),
    ],
)
def test_a_mode_is_set_and_undone_by_who_may_write_nothing(
    tree: Sysroot, serving: Serving, as_nobody: AsNobody, case: tuple[str, str, str]
) -> None:
    mode, file, inside = case
    before = content(tree)

    def applied() -> str:
        with ModeController(tree, tree.base.with_name("state")).applied(mode):
            return tree.read(file)

    assert as_nobody(applied).startswith("PowerlabError"), "without a helper"
    assert content(tree) == before
    with serving(NOBODY):
        said = as_nobody(applied)
    assert said == repr(inside)
    assert content(tree) == before


def test_a_helper_that_ends_half_way_leaves_the_way_back_to_the_next_one(
    tree: Sysroot, serving: Serving, as_nobody: AsNobody
) -> None:
    before, state = content(tree), tree.base.with_name("state")

    mode_is_set, tell_set = os.pipe()
    helper_is_dead, tell_dead = os.pipe()

    def cut_short() -> None:
        with ModeController(tree, state).applied("MODE_15W"):
            os.write(tell_set, b"x")
            os.read(helper_is_dead, 1)

    with serving(NOBODY) as helper:

        def kill() -> None:
            os.read(mode_is_set, 1)
            helper.kill()
            helper.wait()
            os.write(tell_dead, b"x")

        killer = threading.Thread(target=kill)
        killer.start()
        said = as_nobody(cut_short)
        killer.join()
    for handle in (mode_is_set, tell_set, helper_is_dead, tell_dead):
        os.close(handle)
    assert said.startswith("PowerlabError"), said
    assert content(tree) != before
    with serving(NOBODY):
        recovered = as_nobody(lambda: len(ModeController(tree, state).recover()) > 0)
    assert recovered == "True"
    assert content(tree) == before
