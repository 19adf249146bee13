"""The simulated board's nvpmodel behaves as the real one was seen to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from powerlab.boards.board import VendorMode
from powerlab.boards.registry import find_board
from powerlab.sysroot import Sysroot

CPU = "/sys/devices/system/cpu"
GPU = "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b"


def nvpmodel(board: Sysroot, *arguments: str, answer: str | None = None) -> tuple[int, list[str]]:
    done = subprocess.run(
        [board.path("/usr/sbin/nvpmodel"), *arguments],
        input=answer,
        stdin=subprocess.DEVNULL if answer is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_it_names_the_mode_after_a_warning(board: Sysroot) -> None:
    assert nvpmodel(board, "-q") == (0, ["NVPM WARN: fan mode is not set!", "NV Power Mode: MAXN", "0"])


@pytest.mark.parametrize("wanted", [mode for mode in find_board("jetson-agx-xavier").vendor_modes if mode.id != 1])
def test_a_live_mode_sets_cores_and_clocks_and_is_remembered(board: Sysroot, wanted: VendorMode) -> None:
    assert nvpmodel(board, "-m", str(wanted.id)) == (0, [])
    assert nvpmodel(board, "-q")[1][-2:] == [f"NV Power Mode: {wanted.name}", str(wanted.id)]
    assert board.read("/var/lib/nvpmodel/status") == f"pmode:{wanted.id:04d}"
    online = [board.read(f"{CPU}/cpu{core}/online") for core in range(8)]
    assert online == ["1"] * wanted.cores + ["0"] * (8 - wanted.cores)
    assert board.read(f"{CPU}/online") == ",".join(map(str, range(wanted.cores)))
    assert board.read(f"{CPU}/offline") == ",".join(map(str, range(wanted.cores, 8)))
    assert bool(board.read(f"{CPU}/cpufreq/policy6/affected_cpus")) == (wanted.cores > 6)
    cap = int(board.read(f"{CPU}/cpufreq/policy0/scaling_max_freq"))
    gpu_cap = int(board.read(f"{GPU}/max_freq"))
    if wanted.cpu_khz < 0:
        assert (cap, gpu_cap) == (2265600, 1377000000)
    else:
        table = [int(clock) for clock in board.read(f"{CPU}/cpufreq/policy0/scaling_available_frequencies").split()]
        assert cap == max(clock for clock in table if clock <= wanted.cpu_khz)
        assert gpu_cap <= wanted.gpu_hz
    assert int(board.read("/sys/kernel/nvpmodel_emc_cap/emc_iso_cap")) == wanted.emc_hz


def test_going_there_and_back_leaves_the_board_as_it_was(board: Sysroot) -> None:
    def settings() -> dict[str, str]:
        return {path: board.read(path) for path in board.glob(f"{CPU}/cpufreq/*/*") + board.glob(f"{CPU}/cpu*/online")}

    before = settings()
    nvpmodel(board, "-m", "6")
    assert settings() != before
    nvpmodel(board, "-m", "0")
    assert settings() == before


@pytest.mark.parametrize("answer", [None, "no\n", ""])
def test_a_mode_that_needs_a_reboot_asks_and_is_not_set(board: Sysroot, answer: str | None) -> None:
    status, lines = nvpmodel(board, "-m", "1", answer=answer)
    assert status != 0
    assert lines == [
        "NVPM WARN: Golden image context is already created",
        "NVPM WARN: Reboot required for changing to this power mode: 1",
        "NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:",
        "NVPM ERROR: optMask is 1, no request for power mode",
    ]
    assert nvpmodel(board, "-q")[1][-1] == "0"
    assert board.read(f"{CPU}/cpu7/online") == "1"


def test_an_unknown_mode_is_an_error_and_sets_nothing(board: Sysroot) -> None:
    status, lines = nvpmodel(board, "-m", "42")
    assert status != 0
    assert lines == ["NVPM ERROR: power mode 42 is not defined in /etc/nvpmodel.conf"]
    assert nvpmodel(board, "-q")[1][-1] == "0"


@pytest.mark.parametrize("arguments", [[], ["-m"], ["-m", "x"], ["--help"]])
def test_wrong_arguments_print_how_to_use_it(board: Sysroot, arguments: list[str]) -> None:
    status, lines = nvpmodel(board, *arguments)
    assert status != 0
    assert lines == ["usage: nvpmodel -q | -m <mode id>"]


@pytest.mark.parametrize("text", ["pmode:0099\n", "\n"])
def test_an_unset_mode_is_told(board: Sysroot, text: str) -> None:
    board.path("/var/lib/nvpmodel/status").write_text(text)
    status, lines = nvpmodel(board, "-q")
    assert status != 0
    assert lines[-1] == "NVPM ERROR: power mode is not set!"


def test_the_tree_can_be_moved(board: Sysroot, tmp_path: Path) -> None:
    moved = tmp_path / "another place with blanks"
    shutil.move(board.base, moved)
    assert nvpmodel(Sysroot(moved), "-m", "2") == (0, [])
    assert Sysroot(moved).read(f"{CPU}/cpu4/online") == "0"
