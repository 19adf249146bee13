"""A user without rights limits and locks NVIDIA cards through the helper, whose own code writes to the library."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from nvidia_cards import CARD, get, write_cards
from powerlab.domain.mode import Setting
from powerlab.modes.knobs.nvml_limit.knob import NvmlLimit
from powerlab.sysroot import Sysroot

NOBODY = 65534
KNOB = NvmlLimit()
Serving = Callable[[int], AbstractContextManager[subprocess.Popen[str]]]
AsNobody = Callable[[Callable[[], object]], str]


@pytest.fixture
def tree() -> Iterator[Sysroot]:
    """Two cards whose files only root may write, in a place every user can come to."""
    base = Path(tempfile.mkdtemp(prefix="powerlab-cards-"))
    base.chmod(0o755)
    sysroot = write_cards(base, [CARD, {**CARD, "uuid": "GPU-2"}])
    # Loads the library while this process may still read the place where Python's packages lie.
    assert KNOB.read(sysroot)
    yield sysroot
    shutil.rmtree(base)


def made(tree: Sysroot, target: str, value: str) -> str:
    """Make a setting, and return what it then reads."""
    KNOB.write(tree, Setting(knob="nvml_limit", target=target, value=value))
    return {found.target: found.value for found in KNOB.read(tree)}[target]


def test_limits_and_locks_are_made_and_can_be_read_back(tree: Sysroot, serving: Serving, as_nobody: AsNobody) -> None:
    with serving(NOBODY):
        assert as_nobody(lambda: made(tree, "GPU1.power_limit_mw", "150000")) == "'150000'"
        assert as_nobody(lambda: made(tree, "GPU0.locked_clocks_mhz", "300-600")) == "'300-600'"
        assert as_nobody(lambda: made(tree, "GPU0.locked_clocks_mhz", "unlocked")) == "'unlocked'"
    assert (get(tree, "power_limit_mw", 1), get(tree, "power_limit_mw")) == ("150000", "200000")


def test_the_helper_says_why_a_card_refuses(tree: Sysroot, serving: Serving, as_nobody: AsNobody) -> None:
    with serving(NOBODY):
        said = as_nobody(lambda: made(tree, "GPU0.power_limit_mw", "999000"))
        assert "GPU0 takes no power limit of 999 W; choose one from 100 to 250 W" in said
        assert "not on its list" in as_nobody(lambda: made(tree, "GPU0.power_limit_mw", "200000;reboot"))
    assert get(tree, "power_limit_mw") == "200000"


def test_without_a_helper_nothing_changes(tree: Sysroot, as_nobody: AsNobody) -> None:
    assert "run powerlab as root" in as_nobody(lambda: made(tree, "GPU0.power_limit_mw", "150000"))
    assert get(tree, "power_limit_mw") == "200000"
