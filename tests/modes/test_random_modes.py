"""Whatever modes a device goes through, it comes back to where it was, file for file."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.modes.controller import ModeController
from powerlab.sysroot import Sysroot

Content = Callable[[Sysroot], dict[str, str]]
SIMULATED = [name for name, board in BOARDS.items() if board.simulatable]
REFUSALS = ("governor is performance", "brings cores online")
"""What parts may have against each other."""
CPUFREQ = "/sys/devices/system/cpu/cpufreq"


@pytest.fixture(params=SIMULATED)
def any_board(request: pytest.FixtureRequest, tmp_path: Path) -> Sysroot:
    create_tree(request.param, tmp_path / "any")
    return Sysroot(tmp_path / "any")


def write(board: Sysroot, path: str, value: str) -> None:
    board.path(path).write_text(value + "\n")


def leave_by_hand(board: Sysroot, luck: random.Random) -> None:
    """Put a board into a state that no mode would leave it in."""
    for directory in board.glob(f"{CPUFREQ}/policy*"):
        low, high = (int(board.read(f"{directory}/cpuinfo_{end}_freq")) for end in ("min", "max"))
        table = board.path(f"{directory}/scaling_available_frequencies")
        clocks = [int(clock) for clock in table.read_text().split()] if table.exists() else [low, 1_700_000, high]
        chosen = sorted(luck.choices(clocks, k=2))
        write(board, f"{directory}/scaling_min_freq", str(chosen[0]))
        write(board, f"{directory}/scaling_max_freq", str(chosen[1]))
        governors = board.read(f"{directory}/scaling_available_governors").split()
        write(board, f"{directory}/scaling_governor", luck.choice(governors))
    for directory in board.glob("/sys/class/devfreq/*"):
        clocks = sorted(int(clock) for clock in board.read(f"{directory}/available_frequencies").split())
        chosen = sorted(luck.choices(clocks, k=2))
        write(board, f"{directory}/min_freq", str(chosen[0]))
        write(board, f"{directory}/max_freq", str(chosen[1]))


def joined(names: list[str], luck: random.Random) -> str:
    """Return one name, or up to three that set different things."""
    by_key = {key_of(name): name for name in luck.sample(names, k=min(3, len(names)))}
    return "+".join(luck.sample(sorted(by_key.values()), k=luck.randint(1, len(by_key))))


def key_of(name: str) -> str:
    """Return what a name sets: all modes of nvpmodel's table set the same thing."""
    return name.partition("=")[0] if "=" in name or name == "jetson-clocks" else "nvpmodel"


def refused(controller: ModeController, name: str) -> str | None:
    """Apply a mode and go back; return why it could not be applied."""
    try:
        with controller.applied(name):
            assert controller.drifted(name) is None, name
    except PowerlabError as error:
        return str(error)
    return None


def without_live_values(content: dict[str, str]) -> dict[str, str]:
    """Leave out the memory clock's rate, which moves by itself while nobody has pinned it."""
    return {path: text for path, text in content.items() if not path.endswith(("emc/rate", "clk_update_rate"))}


@pytest.mark.campaign(minutes=0.5)
def test_after_any_modes_every_file_is_as_before(any_board: Sysroot, state_dir: Path, content_of: Content) -> None:
    luck = random.Random(11)
    leave_by_hand(any_board, luck)
    controller = ModeController(any_board, state_dir)
    names = [mode.name for mode in controller.modes() if not mode.requires_reboot and mode != CURRENT_MODE]
    before = without_live_values(content_of(any_board))
    applied = 0
    for _ in range(4):
        name = joined(names, luck)
        refusal = refused(controller, name)
        applied += refusal is None
        assert refusal is None or any(words in refusal for words in REFUSALS), (name, refusal)
        assert without_live_values(content_of(any_board)) == before, name
    assert applied > 0


def test_a_mode_set_to_stay_over_another_goes_back_to_the_first_state(
    any_board: Sysroot, state_dir: Path, content_of: Content
) -> None:
    luck = random.Random(7)
    controller = ModeController(any_board, state_dir)
    names = [mode.name for mode in controller.modes() if not mode.requires_reboot and mode != CURRENT_MODE]
    before = without_live_values(content_of(any_board))
    for name in luck.sample(names, 3):
        controller.set(name)
    controller.restore()
    assert without_live_values(content_of(any_board)) == before
