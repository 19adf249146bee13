"""Cores that are not there are refused: at once where the device has them not, else when their turn comes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.worker.cores import PRESENT, check_present, check_usable
from powerlab.sysroot import Sysroot


def point(cores: str) -> Point:
    return Point(workload=Workload(model="net", batch_size=1), threads=1, mode="MODE_15W", cores=cores)


@pytest.fixture
def machine(tmp_path: Path) -> Sysroot:
    path = tmp_path / PRESENT.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("0-7\n")
    return Sysroot(tmp_path)


@pytest.mark.parametrize("cores", ["", "0", "0-7", "2,4-6"])
def test_cores_that_are_present_pass(machine, cores):
    check_present(cores, machine)


@pytest.mark.parametrize("cores", ["8", "0-8", "3,99"])
def test_cores_that_the_device_has_not_are_refused_with_those_it_has(machine, cores):
    with pytest.raises(PowerlabError, match=rf"the cores {cores} do not all exist; this device has the cores 0-7\."):
        check_present(cores, machine)


def test_where_the_kernel_does_not_tell_every_list_passes(tmp_path, machine):
    (tmp_path / PRESENT.lstrip("/")).write_text("nonsense\n")
    check_present("99", machine)
    check_present("99", Sysroot(tmp_path / "empty"))


def test_cores_of_this_process_can_be_used(machine):
    check_usable(point(""), machine)
    check_usable(point(",".join(map(str, sorted(os.sched_getaffinity(0))))), machine)


def test_a_core_that_is_off_line_is_refused_with_its_mode(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    with pytest.raises(PowerlabError, match=r"the cores 3, 4 cannot be used in the power mode 'MODE_15W'"):
        check_usable(point("2-4"), machine)


def test_a_simulated_board_has_cores_that_this_machine_has_not(tmp_path):
    create_tree("jetson-agx-xavier", tmp_path / "board")
    board = Sysroot(tmp_path / "board")
    check_usable(point("900"), board)
    check_present("0-7", board)
    with pytest.raises(PowerlabError, match="this device has the cores 0-7"):
        check_present("0-8", board)
