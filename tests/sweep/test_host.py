"""A device is described by what stands behind its sysroot."""

from __future__ import annotations

import json
import os
import platform

import pytest

from powerlab.boards.simulator import simulated_board
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import check_plan
from powerlab.domain.sweep import SweepPlan
from powerlab.sweep.host import Host
from powerlab.sysroot import SIMULATION_MARKER, Sysroot


def test_this_machine_has_its_own_cores_and_name(tmp_path):
    device = Host(state_dir=tmp_path).device()
    assert 1 <= device.core_count <= len(os.sched_getaffinity(0))
    assert device.architecture == platform.machine()
    assert device.name == platform.node()
    assert not device.simulated


def test_a_simulated_board_has_the_boards_cores_whatever_the_host_has(tmp_path):
    (tmp_path / SIMULATION_MARKER).write_text(json.dumps({}))
    tree = tmp_path / "proc/device-tree"
    tree.mkdir(parents=True)
    (tree / "compatible").write_text("nvidia,p2972-0000\0nvidia,tegra194\0")
    (tree / "model").write_text("Jetson-AGX\0")
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state")
    device = host.device()
    assert device.board == "jetson-agx-xavier"
    assert device.core_count == 8
    assert device.simulated
    assert device.name == "simulated-jetson-agx-xavier"


def test_capabilities_always_hold_the_current_mode_and_a_given_name_wins(tmp_path):
    host = Host(sysroot=Sysroot(tmp_path), state_dir=tmp_path / "state", name="rack-3")
    assert host.device().name == "rack-3"
    assert host.capabilities().modes[0].name == "current"


def test_modes_that_switch_no_cores_have_those_that_are_online_now(tmp_path):
    """In a mode of four cores `current` cannot run eight threads, while the board's own modes can."""
    with simulated_board("jetson-agx-xavier") as sysroot:
        host = Host(sysroot=sysroot, state_dir=tmp_path)
        before = {mode.name: mode.online_cores for mode in host.capabilities().modes}
        assert before["current"] is None, "with every core online there is nothing to say"
        few = next(
            mode for mode in host.controller.modes() if (mode.online_cores or 8) < 8 and not mode.requires_reboot
        )
        with host.controller.applied(few.name):
            capabilities, device = host.capabilities(), host.device()
        now = {mode.name: mode.online_cores for mode in capabilities.modes}
        assert device.core_count == 8
        assert now["current"] == few.online_cores
        assert all(now[name] == few.online_cores for name, cores in before.items() if cores is None and name in now)
        assert all(now[name] == cores for name, cores in before.items() if cores is not None)
    most = next(name for name, cores in before.items() if cores == 8)
    check_plan(SweepPlan(models=("alexnet",), threads=(8,), modes=(most,)), device, capabilities)
    with pytest.raises(PowerlabError, match=f"'current' has {few.online_cores} cores online"):
        check_plan(SweepPlan(models=("alexnet",), threads=(8,)), device, capabilities)
