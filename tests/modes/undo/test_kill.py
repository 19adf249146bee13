"""A process that sets a mode may be killed at any moment, and the device still gets its own settings back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot

SCRIPT = Path(__file__).parents[1] / "kill_every_step.py"
POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
GPU = "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
Put = Callable[[str, str], None]
Content = Callable[[Sysroot], dict[str, str]]
Outcomes = Sequence[dict[str, Any]]


def kill(*options: str) -> Outcomes:
    """Kill in a process of its own, which forks more freely than pytest may."""
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: Outcomes = json.loads(done.stdout)
    assert [failure for outcome in found for failure in outcome["failures"]] == []
    assert done.returncode == 0, done.stderr
    return found


def deaths_of(found: Outcomes) -> Counter[str]:
    return sum((Counter(outcome["kills"]) for outcome in found), Counter[str]())


def check_restored(found: Outcomes) -> None:
    """Every death was followed by a recovery after which the board was, file by file, as before."""
    assert deaths_of(found)["none"] == 0, "who was to be killed was killed"
    assert sum(outcome["restores"] for outcome in found) == deaths_of(found).total()


@pytest.mark.parametrize("board", [pytest.param("jetson-agx-xavier", marks=pytest.mark.campaign), "laptop"])
def test_after_a_kill_the_device_is_as_it_was_whoever_is_killed(board: str) -> None:
    found = kill("--quick", "--board", board)
    check_restored(found)
    scenarios = {outcome["case"]["scenario"] for outcome in found}
    assert scenarios == {"applied", "set", "restore", "reboot", "client of the helper", "helper", "both"}
    assert deaths_of(found).total() >= 80


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("mode", "must_hold"),
    [
        ("MODE_15W", {"while nvpmodel runs": 2, "replace": 1, "unlink": 1, "fsync": 3}),
        ("governor=powersave+cpu-max=576000kHz", {"write": 17, "replace": 1, "unlink": 1}),
    ],
)
def test_no_step_is_left_out(mode: str, must_hold: dict[str, int]) -> None:
    (outcome,) = kill("--board", "jetson-agx-xavier", "--mode", mode)
    check_restored([outcome])
    deaths = deaths_of([outcome])
    assert deaths.total() == outcome["steps"]
    assert {name: deaths[name] for name, least in must_hold.items() if deaths[name] < least} == {}


@pytest.mark.campaign(minutes=3)
def test_hundreds_of_kills_are_hundreds_of_restores() -> None:
    found = kill()
    check_restored(found)
    assert deaths_of(found).total() >= 400
    assert {outcome["case"]["board"] for outcome in found} == set(BOARDS) - {"generic"}
    modes = " ".join(outcome["case"]["mode"] for outcome in found)
    parts = ("cores=", "governor=", "cpu-max=", "epp=", "gpu-max=", "emc-max=", "gpu-limit=", "gpu-lock=", "+")
    cards = ("gpu-memory-lock=", "amd-gpu-limit=", "amd-gpu-level=", "intel-gpu-limit=", "intel-gpu-max=")
    for part in (*parts, *cards, "package-limit=", "profile=", "cpu-quota=", "jetson-clocks", "MODE_"):
        assert part in modes, f"no mode with {part} was killed in"
    assert len(KNOBS) == 12, "a new knob needs a part in the list above"


def change_by_hand(put: Put) -> None:
    """Settings no mode would choose: going back to the mode's own is not enough."""
    put(f"{POLICY0}/scaling_governor", "ondemand")
    put(f"{POLICY0}/scaling_min_freq", "115200")
    put(f"{POLICY0}/scaling_max_freq", "1881600")
    put(f"{GPU}/min_freq", "114750000")
    put(f"{GPU}/max_freq", "905250000")


@pytest.mark.parametrize("writes", [1, 5, 9, 12, 20])
def test_an_nvpmodel_that_dies_half_way_leaves_nothing_behind(
    board: Sysroot, controller: ModeController, put: Put, content_of: Content, writes: int
) -> None:
    change_by_hand(put)
    program = board.path("/usr/sbin/nvpmodel")
    sound = program.read_text()
    armed = board.path("/armed")
    armed.write_text("")
    fatal = f"""
    global WRITES
    WRITES += 1
    if WRITES == {writes} and inside("/armed").exists():
        inside("/armed").unlink()
        os.kill(os.getpid(), 9)
"""
    program.write_text(
        sound.replace("\n    handle = os.open(", fatal + "    handle = os.open(", 1).replace(
            "EXIT_ERROR = 255", "EXIT_ERROR = 255\nWRITES = 0", 1
        )
    )
    before = content_of(board)
    with pytest.raises(PowerlabError, match="did not set MODE_15W"), controller.applied("MODE_15W"):
        pytest.fail("the mode is not set")
    assert not armed.exists(), "it did die half-way"
    after = content_of(board)
    del before["armed"]
    assert after == before
    assert controller.unrestored() is None
