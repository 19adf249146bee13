"""Programs that tell a board's rails against the rails' own files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_programs import write_program
from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree, simulated_board
from powerlab.power.cross_check import Compared, cross_check
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]
PROGRAM = """
import itertools, time
for line in itertools.cycle({lines!r}):
    print(line, flush=True)
    time.sleep(0.01)
"""
TRUE = "RAM 1/2MB GPU 1154/1154 CPU 384/384 SOC 2502/2502 CV 0/0 VDDRQ 192/192 SYS5V 2694/2694"


def tell(sysroot: Sysroot, *lines: str) -> Sysroot:
    write_program(sysroot, "/usr/bin/tegrastats", PROGRAM.format(lines=lines))
    return sysroot


@pytest.mark.parametrize("name", ["nothing", "xeon"])
def test_where_there_is_nothing_to_compare_nothing_is_said(machine: Machine, name: str) -> None:
    assert cross_check(machine(name)) == ()
    assert cross_check(tell(machine(name), TRUE)) == (), "no files to compare with"


def test_files_alone_are_not_compared(machine: Machine) -> None:
    assert cross_check(machine("xavier-jp4")) == ()


@pytest.mark.parametrize("name", ["xavier-jp4", "xavier-jp5"])
def test_a_program_that_says_the_same_is_not_complained_about(machine: Machine, name: str) -> None:
    assert cross_check(tell(machine(name), TRUE)) == ()


def test_what_both_steps_allow_is_no_difference(machine: Machine) -> None:
    assert cross_check(tell(machine("xavier-jp4"), TRUE.replace("2502/", "2802/"))) == ()


def test_a_rail_that_is_told_twice_as_high_is_said_with_both_figures(machine: Machine) -> None:
    (sentence,) = cross_check(tell(machine("xavier-jp4"), TRUE.replace("SYS5V 2694", "SYS5V 5388")))
    for words in ("tegrastats", "5.388 W", "SYS5V", "ina3221", "2.694 W"):
        assert words in sentence


def test_power_that_moves_is_forgiven_where_one_comparison_agrees(machine: Machine) -> None:
    high = TRUE.replace("SYS5V 2694", "SYS5V 9000")
    assert cross_check(tell(machine("xavier-jp4"), high, high, TRUE)) == ()


def test_rails_that_only_one_side_has_are_not_compared(machine: Machine) -> None:
    assert cross_check(tell(machine("xavier-jp4"), f"{TRUE} NVJPG 9000/9000".replace("CV 0/0", ""))) == ()


def test_a_rail_that_comes_seldom_does_not_hold_up_the_others(machine: Machine) -> None:
    seldom = TRUE.replace(" CV 0/0", "")
    assert cross_check(tell(machine("xavier-jp4"), TRUE, *[seldom] * 1000)) == ()


ENDS_THE_SECOND_TIME = """
import itertools, pathlib, sys, time
ran = pathlib.Path(__file__).with_name("ran")
again = ran.exists()
ran.touch()
for count in itertools.count():
    print({line!r}, flush=True)
    time.sleep(0.01)
    if again and count == 1:
        sys.exit()
"""


def test_a_program_that_ends_meanwhile_is_said(machine: Machine) -> None:
    sysroot = machine("xavier-jp4")
    write_program(sysroot, "/usr/bin/tegrastats", ENDS_THE_SECOND_TIME.format(line=TRUE))
    (sentence,) = cross_check(sysroot)
    assert "could not be compared" in sentence


@pytest.mark.parametrize("name", [name for name, board in BOARDS.items() if board.jetpacks])
def test_every_simulated_jetson_agrees_with_itself(name: str, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "board")
    assert cross_check(Sysroot(tmp_path / "board")) == ()


def test_a_running_board_agrees_with_itself() -> None:
    with simulated_board("jetson-agx-orin") as sysroot:
        assert cross_check(sysroot) == ()


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_apart_is_symmetric(one_w: float, other_w: float) -> None:
    assert Compared(one_w, other_w).apart_w == Compared(other_w, one_w).apart_w >= 0
