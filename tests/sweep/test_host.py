"""A device is described by what stands behind its sysroot."""

from __future__ import annotations

import json
import os
import platform

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
