"""A process that sets a mode may be killed at any moment, and the device still gets its own settings back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.sysroot import Sysroot

SCRIPT = Path(__file__).with_name("kill_every_step.py")
POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
GPU = "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
Put = Callable[[str, str], None]
Content = Callable[[Sysroot], dict[str, str]]


def change_by_hand(put: Put) -> None:
    """Settings no mode would choose: going back to the mode's own is not enough."""
    put(f"{POLICY0}/scaling_governor", "ondemand")
    put(f"{POLICY0}/scaling_min_freq", "115200")
    put(f"{POLICY0}/scaling_max_freq", "1881600")
    put(f"{GPU}/min_freq", "114750000")
    put(f"{GPU}/max_freq", "905250000")


@pytest.mark.parametrize(
    ("scenario", "mode", "must_hold"),
    [
        ("applied", "MODE_15W", {"while nvpmodel -m runs": 2, "replace": 1, "unlink": 1, "fsync": 3}),
        ("applied", "cpu-max=576000kHz", {"write": 10, "replace": 1, "unlink": 1}),
        ("set", "governor=performance", {"write": 5, "replace": 2}),
        ("restore", "governor=performance", {"write": 4, "unlink": 1}),
    ],
)
def test_after_a_kill_at_any_step_the_device_is_as_it_was(
    board: Sysroot, put: Put, scenario: str, mode: str, must_hold: dict[str, int]
) -> None:
    change_by_hand(put)
    if not mode.startswith("MODE"):
        board.path("/etc/nvpmodel.conf").unlink()  # a board with cpufreq alone: no program to start, a quick test
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(board.base), str(board.base.with_name("state")), scenario, mode],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    assert deaths[-1]["name"] is None, "the last one came to its end"
    assert [death for death in deaths if death["different"] or death["errors"]] == []
    assert [death for death in deaths if death["second"]] == [], "the second recovery finds nothing to do"
    steps = Counter(death["name"] for death in deaths)
    assert {name: steps[name] for name, least in must_hold.items() if steps[name] < least} == {}


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
    assert controller.not_put_back() is None
