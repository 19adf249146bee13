"""The helper reboots a device only where its owner allows it, and only into a power mode of nvpmodel."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator.reboot import reboot_requested
from powerlab.boards.simulator.tree import create_tree
from powerlab.privileged.protocol import Done, May, Reboot, Refused, RunProgram
from powerlab.sysroot import Sysroot
from powerlab_helper.actions import Actions
from powerlab_helper.allowlist import Allowed

NVPMODEL = "/usr/sbin/nvpmodel"
INTO_10W = Reboot(NVPMODEL, ("-m", "1"))


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    create_tree("jetson-agx-xavier", tmp_path / "tree")
    return Sysroot(tmp_path / "tree")


def test_without_its_owner_s_leave_it_never_reboots(board: Sysroot) -> None:
    reply = Actions(board, Allowed()).carry_out(INTO_10W, 0).reply
    assert isinstance(reply, Refused)
    assert "start it with --allow-reboot" in reply.sentence
    assert not reboot_requested(board)


def test_running_the_program_is_still_no_reboot(board: Sysroot) -> None:
    reply = Actions(board, Allowed(reboots=True)).carry_out(RunProgram(NVPMODEL, ("-m", "1")), 0).reply
    assert isinstance(reply, Done)
    assert "no request for power mode" in reply.text
    assert not reboot_requested(board)


def test_with_leave_it_answers_yes(board: Sysroot) -> None:
    reply = Actions(board, Allowed(reboots=True)).carry_out(INTO_10W, 0).reply
    assert isinstance(reply, Done)
    assert reboot_requested(board)


@pytest.mark.parametrize(
    "request_",
    [
        Reboot(NVPMODEL, ("-q",)),
        Reboot(NVPMODEL, ("-m", "1; reboot")),
        Reboot("/usr/bin/jetson_clocks", ()),
        Reboot("/sbin/reboot", ()),
    ],
)
def test_it_reboots_with_nothing_else(board: Sysroot, request_: Reboot) -> None:
    reply = Actions(board, Allowed(reboots=True)).carry_out(request_, 0).reply
    assert isinstance(reply, Refused)
    assert "that is not on its list" in reply.sentence


def test_a_grant_to_reboot_is_none_to_run(board: Sysroot) -> None:
    allowed = Allowed(reboots=True)
    assert allowed.may_run_with(NVPMODEL, ("-m", "1"))
    assert isinstance(Actions(board, allowed).carry_out(May("run", "/sbin/reboot"), 0).reply, Refused)
