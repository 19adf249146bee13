"""A process that limits and locks cards is killed before and after every write; the next one puts everything back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nvidia_cards import CARD, get, write_cards
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.nvml_limit import knob as nvml_limit
from powerlab.modes.knobs.nvml_limit.knob import NvmlLimit
from powerlab.nvml_library import Library
from powerlab.sysroot import Sysroot

pytestmark = pytest.mark.campaign

MODE = "gpu-limit=150W+gpu-lock=300MHz+gpu-memory-lock=405MHz"
AMPERE = {**CARD, "compute_capability": 86, "locked_memory_clocks_mhz": "unlocked"}
CARDS = [AMPERE, {**CARD, "uuid": "GPU-2", "power_limit_mw": 240_000}]
WRITES = (
    "nvmlDeviceSetPowerManagementLimit",
    *(f"nvmlDevice{verb}{what}LockedClocks" for verb in ("Set", "Reset") for what in ("Gpu", "Memory")),
)
STEPS = 2 * (2 * 6) + 2 * 4
"""Each card is limited, noted and locked, then limited, unlocked and forgotten; the memory of the first is noted and
locked, then unlocked and forgotten; before and after each of these."""
KILLED = 9


class Reaper:
    """Ends the process at one moment: that many writes begin or end before it."""

    def __init__(self, at: int) -> None:
        self._left = at

    def pass_by(self) -> None:
        if self._left == 0:
            os._exit(KILLED)
        self._left -= 1

    def around(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self.pass_by()
            answer = write(*arguments)
            self.pass_by()
            return answer

        return watched


def controller(sysroot: Sysroot, state: Path) -> ModeController:
    return ModeController(sysroot, state, [NvmlLimit()])


def apply_and_die(sysroot: Sysroot, state: Path, step: int) -> int:
    """Apply the mode in a child that is killed at one step; return how the child ended."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            reaper, ask = Reaper(step), Library.ask
            for name in ("note_lock", "forget_lock"):
                setattr(nvml_limit, name, reaper.around(getattr(nvml_limit, name)))
            watched = reaper.around(ask)
            Library.ask = lambda self, function, *rest: (watched if function in WRITES else ask)(  # type: ignore[method-assign]
                self, function, *rest
            )
            with controller(sysroot, state).applied(MODE):
                pass
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def cards(tmp_path: Path) -> Sysroot:
    sysroot = write_cards(tmp_path / "tree", CARDS)
    for path in ("/run/lock", "/proc/sys/kernel/random"):
        sysroot.path(path).mkdir(parents=True)
    sysroot.path("/proc/sys/kernel/random/boot_id").write_text("boot\n")
    assert NvmlLimit().read(sysroot)
    return sysroot


def settings_of(sysroot: Sysroot) -> list[tuple[str, str]]:
    limits = [(get(sysroot, "power_limit_mw", card), get(sysroot, "locked_clocks_mhz", card)) for card in (0, 1)]
    return [*limits, ("memory", get(sysroot, "locked_memory_clocks_mhz"))]


def test_the_steps_are_all_the_steps(cards: Sysroot, tmp_path: Path) -> None:
    assert apply_and_die(cards, tmp_path / "state", STEPS - 1) == KILLED
    controller(cards, tmp_path / "state").recover()
    assert apply_and_die(cards, tmp_path / "state", STEPS) == 0


@pytest.mark.parametrize("step", range(STEPS))
def test_a_kill_at_any_write_is_undone(cards: Sysroot, tmp_path: Path, step: int) -> None:
    before, read = settings_of(cards), NvmlLimit().read(cards)
    assert apply_and_die(cards, tmp_path / "state", step) == KILLED
    assert controller(cards, tmp_path / "state").recover()
    assert settings_of(cards) == before == [("200000", "unlocked"), ("240000", "unlocked"), ("memory", "unlocked")]
    assert NvmlLimit().read(cards) == read
    assert not [*cards.path("/run/powerlab").glob("locked-clocks-*")]


@pytest.mark.parametrize("step", range(1, STEPS, 4))
def test_a_lock_of_our_own_from_before_comes_back_too(cards: Sysroot, tmp_path: Path, step: int) -> None:
    controller(cards, tmp_path / "state").set("gpu-lock=900MHz")
    before, read = settings_of(cards), NvmlLimit().read(cards)
    assert apply_and_die(cards, tmp_path / "state", step) == KILLED
    controller(cards, tmp_path / "state").recover()
    assert settings_of(cards) == before
    assert NvmlLimit().read(cards) == read
