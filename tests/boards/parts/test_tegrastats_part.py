"""The simulated boards' tegrastats says what their sensor files say, in a form that each JetPack has."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree
from powerlab.power.base import FileChannel
from powerlab.power.sources.ina3221 import Ina3221
from powerlab.power.sources.tegrastats import parse_line
from powerlab.sysroot import Sysroot

JETSONS = [(name, jetpack) for name, board in BOARDS.items() if board.jetpacks for jetpack in board.jetpacks]


def first_line(sysroot: Sysroot, *arguments: str) -> str:
    with running(sysroot, *arguments) as process:
        assert process.stdout is not None
        return process.stdout.readline()


@contextmanager
def running(sysroot: Sysroot, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sysroot.path("/usr/bin/tegrastats"), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def in_files_w(sysroot: Sysroot) -> dict[str, float]:
    found = {}
    for channel in Ina3221().channels(sysroot):
        assert isinstance(channel, FileChannel)
        value = channel.scale
        for path in channel.paths:
            value *= int(sysroot.read(path))
        found[channel.rail.name] = value
    return found


@pytest.mark.parametrize(("name", "jetpack"), JETSONS)
def test_every_jetson_prints_the_rails_of_its_files(name: str, jetpack: int, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "board", jetpack)
    sysroot = Sysroot(tmp_path / "board")
    text = first_line(sysroot, "--interval", "1")
    found = parse_line(text)
    # The program cuts to whole milliwatts.
    assert found.rails_w == pytest.approx(in_files_w(sysroot), abs=1.001e-3)
    assert list(found.rails_w) == list(in_files_w(sysroot)), "in the order of the chips"
    assert ("mW/" in text) is (jetpack >= 5)
    assert (found.date is not None) is (jetpack >= 6)
    assert found.temperatures_c
    assert min(found.temperatures_c.values()) > -100


def test_it_follows_the_files_and_its_average_is_its_own(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path / "board", 4)
    sysroot = Sysroot(tmp_path / "board")
    (power,) = (path for path in sysroot.glob("/sys/bus/i2c/drivers/ina3221x/1-0040/*/in_power0_input"))
    before = parse_line(first_line(sysroot, "--interval", "1")).rails_w["GPU"]
    with running(sysroot, "--interval", "20") as process:
        assert process.stdout is not None
        process.stdout.readline()
        sysroot.path(power).write_text("50000\n")
        lines = [process.stdout.readline() for _ in range(3)]
    assert parse_line(lines[-1]).rails_w["GPU"] == 50.0 != before
    assert "GPU 50000/50000" not in lines[-1]


def test_cores_that_are_off_and_busy_ones_are_shown(tmp_path: Path) -> None:
    create_tree("jetson-agx-xavier", tmp_path / "board", 4)
    sysroot = Sysroot(tmp_path / "board")
    sysroot.path("/sys/devices/system/cpu/cpu7/online").write_text("0\n")
    (sysroot.path("/simulation/load") / "1").write_text("2      1\n")
    shown = first_line(sysroot, "--interval", "1").partition(" CPU [")[2].partition("]")[0].split(",")
    assert [core.partition("@")[0] for core in shown] == ["100%", "100%", "0%", "0%", "0%", "0%", "0%", "off"]


@pytest.mark.parametrize("arguments", [["--interval"], ["--interval", "0"], ["--help"]])
def test_other_arguments_are_refused(board: Sysroot, arguments: list[str]) -> None:
    done = subprocess.run([board.path("/usr/bin/tegrastats"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage" in done.stdout


def test_a_tree_may_be_moved(board: Sysroot, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere with blanks"
    shutil.move(board.base, moved)
    assert parse_line(first_line(Sysroot(moved), "--interval", "1")).rails_w


def test_its_date_is_now(tmp_path: Path) -> None:
    create_tree("jetson-orin-nano", tmp_path / "board", 6)
    before = datetime.now().replace(microsecond=0)
    date = parse_line(first_line(Sysroot(tmp_path / "board"), "--interval", "1")).date
    assert date is not None
    assert before <= date <= datetime.now()
