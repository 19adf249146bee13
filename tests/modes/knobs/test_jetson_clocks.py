from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.jetson_clocks import knob as module
from powerlab.modes.knobs.jetson_clocks import program as jetson_clocks_program
from powerlab.modes.knobs.jetson_clocks.knob import MODE, JetsonClocks
from powerlab.modes.knobs.jetson_clocks.program import PROGRAM, STORE, let_clocks_go, pin_clocks
from powerlab.sysroot import Sysroot

POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
IDLE = "/sys/devices/system/cpu/cpu0/cpuidle/state0/disable"
GPU = "/sys/class/devfreq/17000000.gv11b"
LOCK = "/sys/kernel/debug/bpmp/debug/clk/emc/mrq_rate_locked"
Put = Callable[[str, str], None]


def setting(target: str, value: str) -> Setting:
    return Setting(knob="jetson_clocks", target=target, value=value)


def states(board: Sysroot) -> dict[str, str]:
    """Return what the program changes, but for the memory clock's rate, which moves by itself when it is free."""
    patterns = (f"{POLICY0[:-1]}*/scaling_*_freq", IDLE.replace("cpu0", "cpu*").replace("state0", "*"), f"{GPU}/*_freq")
    paths = [path for pattern in patterns for path in board.glob(pattern) if not path.endswith("cur_freq")]
    return {path: board.read(path) for path in (*paths, LOCK)}


def replace_program(board: Sysroot, script: str) -> None:
    board.path(PROGRAM).write_text(f"#!/bin/sh\n{script}\n")


def test_a_machine_without_it_says_so(tmp_path: Path) -> None:
    knob, nothing = JetsonClocks(), Sysroot(tmp_path)
    assert knob.probe(nothing).availability is Availability.ABSENT
    assert list(knob.read(nothing)) == list(knob.modes(nothing)) == []
    assert knob.parse(nothing, MODE) is None


def test_every_clock_is_pinned_and_let_go(board: Sysroot, controller: ModeController, put: Put) -> None:
    put(f"{POLICY0}/scaling_min_freq", "499200")
    put(f"{GPU}/max_freq", "905250000")
    put(IDLE, "1")
    before = states(board)
    assert JetsonClocks().probe(board).detail == "clocks are not pinned"
    with controller.applied(MODE):
        assert board.read(f"{POLICY0}/scaling_min_freq") == "2265600"
        assert board.read(f"{GPU}/min_freq") == "905250000"
        assert board.read(LOCK) == "1"
        assert JetsonClocks().probe(board).detail == "clocks are pinned"
        assert board.path(STORE).is_file()
        assert controller.drifted(MODE) is None
    assert states(board) == before
    assert not board.path(STORE).exists()


def test_everything_comes_back_without_the_programs_file(board: Sysroot, controller: ModeController) -> None:
    before = states(board)
    with controller.applied(MODE):
        board.path(STORE).unlink()
    assert states(board) == before


def test_everything_comes_back_when_the_program_is_broken_meanwhile(board: Sysroot, controller: ModeController) -> None:
    before = states(board)
    with controller.applied(MODE):
        replace_program(board, "exit 1")
    assert states(board) == before


def test_it_pins_at_the_limits_that_other_parts_set(board: Sysroot, controller: ModeController, put: Put) -> None:
    put(f"{POLICY0}/scaling_min_freq", "1344000")
    before = states(board)
    with controller.applied(f"{MODE}+cpu-max=806400kHz+gpu-max=522750000Hz"):
        assert board.read(f"{POLICY0}/scaling_min_freq") == board.read(f"{POLICY0}/scaling_max_freq") == "806400"
        assert board.read(f"{GPU}/min_freq") == "522750000"
        assert "cpufreq" not in board.read(STORE), "its file was written after the cap, so it does not know the clocks"
    assert states(board) == before


def test_a_file_left_by_a_killed_process_does_not_make_the_program_ask(
    board: Sysroot, controller: ModeController
) -> None:
    board.path(STORE).parent.mkdir(parents=True, exist_ok=True)
    board.path(STORE).write_text(f"{IDLE}:1\n")
    with controller.applied(MODE):
        pass
    assert board.read(IDLE) == "0"


def test_clocks_that_were_pinned_stay_pinned(board: Sysroot, controller: ModeController) -> None:
    controller.set(MODE)
    before = states(board)
    with controller.applied("MODE_15W"):
        assert states(board) != before
    assert states(board) == before
    with controller.applied(MODE):
        assert states(board) == before
    assert states(board) == before
    controller.restore()
    assert board.read(LOCK) == "0"


def test_the_gpus_power_gating_is_put_back(board: Sysroot, controller: ModeController) -> None:
    gate = board.path("/sys/devices/gpu.0/railgate_enable")
    gate.write_text("1\n")
    program = board.path(PROGRAM).read_text()
    board.path("/usr/bin/real").write_text(program)
    board.path("/usr/bin/real").chmod(0o755)
    replace_program(board, f'[ $# = 0 ] && echo 0 > "{gate}"; exec "{board.path("/usr/bin/real")}" "$@"')
    assert setting("gpu_power_gating", "1") in JetsonClocks().read(board)
    with controller.applied(MODE):
        assert gate.read_text() == "0\n"
    assert gate.read_text() == "1\n"


def test_a_program_that_does_not_pin_is_told_in_its_own_words(board: Sysroot, controller: ModeController) -> None:
    before = states(board)
    replace_program(board, "echo 'Error: Unknown GPU Type!'; exit 1")
    with (
        pytest.raises(PowerlabError, match="did not pin the clocks; it said: Error: Unknown GPU Type!"),
        controller.applied(MODE),
    ):
        pytest.fail("not set")
    assert states(board) == before


def test_a_program_that_asks_gets_no_answer_and_one_that_hangs_is_ended(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_program(board, 'read answer && echo "got $answer" || echo "no input"')
    with pytest.raises(PowerlabError, match="no input"):
        JetsonClocks().write(board, setting("pinned", "yes"))
    monkeypatch.setattr(jetson_clocks_program, "TIMEOUT_S", 0.05)
    replace_program(board, "exec sleep 60")
    with pytest.raises(PowerlabError, match="did not end within"):
        JetsonClocks().write(board, setting("pinned", "yes"))


@pytest.mark.parametrize(
    "bad", [setting("colour", "red"), setting("gpu_power_gating", "1"), setting("cpu/.idle_disabled", "1")]
)
def test_a_setting_that_does_not_exist_is_refused(board: Sysroot, bad: Setting) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        JetsonClocks().write(board, bad)


def test_a_user_who_may_not_is_told(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "may_set", lambda sysroot, knob: False)
    probe = JetsonClocks().probe(board)
    assert probe.availability is Availability.DENIED
    assert "root" in probe.remedy


def test_a_file_of_the_program_that_cannot_be_removed_is_told(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    pin_clocks(board)

    def refuse(*_: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(PowerlabError, match=r"cannot be removed.*run powerlab as root"):
        let_clocks_go(board)
