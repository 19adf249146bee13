"""The simulated boards' jetson_clocks pins every clock and puts back what was there, as NVIDIA documents."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jetsons import IDS, JETSONS
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.state import read_settings
from powerlab.sysroot import Sysroot

CPU = "/sys/devices/system/cpu"
TICK_NS = 10_000_000
EVERY = pytest.mark.parametrize(("name", "jetpack"), JETSONS, ids=IDS)


def jetson_clocks(board: Sysroot, *arguments: str | Path, answer: str | None = None) -> tuple[int, str]:
    done = subprocess.run(
        [board.path("/usr/bin/jetson_clocks"), *map(str, arguments)],
        input=answer,
        stdin=subprocess.DEVNULL if answer is None else None,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def settings(board: Sysroot) -> dict[str, str]:
    patterns = ("scaling_m*_freq", "scaling_governor", "online", "disable", "m*_freq", "mrq_rate_locked", "clk_state")
    found = {path for pattern in patterns for path in (board.base / "sys").rglob(pattern) if path.is_file()}
    return {str(path.relative_to(board.base)): path.read_text() for path in sorted(found)}


@contextmanager
def moving(board: Sysroot) -> Iterator[Simulator]:
    simulator = Simulator(board)
    yield simulator
    simulator.close()


@EVERY
def test_it_pins_every_clock_and_restores_exactly_what_was_there(name: str, jetpack: int, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "tree", jetpack)
    board = Sysroot(tmp_path / "tree")
    before, simulation = settings(board), layout.simulation_of(name)
    assert jetson_clocks(board, "--store", tmp_path / "kept") == (0, "")
    assert jetson_clocks(board) == (0, "")
    for policy in read_settings(board, simulation).policies:
        assert policy.idle_khz == policy.busy_khz
        assert policy.shallow
    for gpu in board.glob("/sys/class/devfreq/*"):
        assert board.read(f"{gpu}/min_freq") == board.read(f"{gpu}/max_freq")
    assert read_settings(board, simulation).emc_pinned
    assert settings(board) != before
    assert jetson_clocks(board, "--restore", tmp_path / "kept") == (0, "")
    assert settings(board) == before


@EVERY
def test_pinned_clocks_cost_an_idle_board_power(name: str, jetpack: int, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "tree", jetpack)
    board = Sysroot(tmp_path / "tree")
    with moving(board) as simulator:
        free_w = dict(simulator.tick(0))
        jetson_clocks(board)
        for tick in range(1, 11):
            pinned_w = dict(simulator.tick(tick * TICK_NS))
    assert all(pinned_w[rail] >= watts for rail, watts in free_w.items())
    assert sum(pinned_w.values()) > 1.1 * sum(free_w.values())


def test_the_caps_of_the_mode_hold(board: Sysroot) -> None:
    subprocess.run([board.path("/usr/sbin/nvpmodel"), "-m", "2"], stdin=subprocess.DEVNULL, check=True)
    assert jetson_clocks(board) == (0, "")
    assert board.read(f"{CPU}/cpufreq/policy0/scaling_min_freq") == "1190400"
    assert board.read("/sys/kernel/debug/bpmp/debug/clk/emc/rate") == "1331200000"


def test_the_pinned_clocks_are_shown_while_the_board_idles(board: Sysroot) -> None:
    jetson_clocks(board)
    with moving(board) as simulator:
        simulator.tick(0)
    assert board.read(f"{CPU}/cpufreq/policy0/scaling_cur_freq") == "2265600"
    assert board.read("/sys/class/devfreq/17000000.gv11b/cur_freq") == "1377000000"


def test_show_prints_what_the_real_one_prints(board: Sysroot) -> None:
    status, text = jetson_clocks(board, "--show")
    lines = text.splitlines()
    assert status == 0
    assert lines[0] == "SOC family:tegra194  Machine:Jetson-AGX"
    assert lines[1] == "Online CPUs: 0,1,2,3,4,5,6,7, Offline CPUs: "
    assert lines[2] == (
        "cpu0:  Governor=schedutil MinFreq=1190400 MaxFreq=2265600 CurrentFreq=1190400 IdleStates: C1=1 c6=1"
    )
    assert "GPU MinFreq=318750000 MaxFreq=1377000000 CurrentFreq=318750000" in lines
    assert "EMC MinFreq=204000000 MaxFreq=2133000000 CurrentFreq=204000000 FreqOverride=0" in lines
    assert lines[-1] == "NV Power Mode: MAXN"
    jetson_clocks(board)
    _, text = jetson_clocks(board, "--show")
    assert "MinFreq=2265600 MaxFreq=2265600" in text
    assert "C1=0 c6=0" in text
    assert "FreqOverride=1" in text


@EVERY
def test_show_has_a_line_for_each_core(name: str, jetpack: int, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "tree", jetpack)
    board = Sysroot(tmp_path / "tree")
    status, text = jetson_clocks(board, "--show")
    assert status == 0
    cores = re.findall(r"^cpu(\d+): ", text, re.MULTILINE)
    assert cores == [str(core) for core in range(len(board.glob(f"{CPU}/cpu[0-9]*")))]


def test_without_a_name_the_file_lies_in_the_trees_own_root(board: Sysroot) -> None:
    assert jetson_clocks(board, "--store") == (0, "")
    assert board.path("/root/l4t_dfs.conf").is_file()
    jetson_clocks(board)
    assert jetson_clocks(board, "--restore") == (0, "")
    assert board.read(f"{CPU}/cpufreq/policy0/scaling_min_freq") == "1190400"


@pytest.mark.parametrize("answer", [None, "n\n", ""])
def test_a_file_that_exists_is_kept_unless_somebody_says_yes(board: Sysroot, answer: str | None) -> None:
    jetson_clocks(board, "--store")
    kept = board.path("/root/l4t_dfs.conf").read_text()
    jetson_clocks(board)
    status, text = jetson_clocks(board, "--store", answer=answer)
    assert status != 0
    assert "already exists. Can I overwrite it? Y/N:" in text
    assert board.path("/root/l4t_dfs.conf").read_text() == kept
    assert jetson_clocks(board, "--store", answer="Y\n")[0] == 0
    assert board.path("/root/l4t_dfs.conf").read_text() != kept


def test_there_is_nothing_to_restore_before_something_was_stored(board: Sysroot, tmp_path: Path) -> None:
    before = settings(board)
    status, text = jetson_clocks(board, "--restore", tmp_path / "nothing")
    assert status != 0
    assert "file not found" in text
    assert settings(board) == before


def test_lines_that_mean_nothing_here_are_passed_over(board: Sysroot, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text(
        f"/sys/devices/pwm-fan/target_pwm:0\n\n{CPU}/cpufreq/policy0/scaling_min_freq:115200\n"
    )
    assert jetson_clocks(board, "--restore", tmp_path / "kept") == (0, "")
    assert board.read(f"{CPU}/cpufreq/policy0/scaling_min_freq") == "115200"


@pytest.mark.parametrize("arguments", [["--help"], ["--store", "a", "b"], ["x"], ["--show", "x"]])
def test_wrong_arguments_print_how_to_use_it_and_change_nothing(board: Sysroot, arguments: list[str]) -> None:
    before = settings(board)
    status, text = jetson_clocks(board, *arguments)
    assert status != 0
    assert text.startswith("usage: jetson_clocks")
    assert settings(board) == before


def test_the_tree_can_be_moved(board: Sysroot, tmp_path: Path) -> None:
    moved = tmp_path / "another place with blanks"
    shutil.move(board.base, moved)
    assert jetson_clocks(Sysroot(moved)) == (0, "")
    assert Sysroot(moved).read(f"{CPU}/cpufreq/policy6/scaling_min_freq") == "2265600"
