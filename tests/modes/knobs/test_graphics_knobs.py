"""Knobs of AMD's and Intel's cards: what they set, what they refuse, and that a kill at any write is undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob
from powerlab.modes.controller import ModeController
from powerlab.modes.io.permissions import FilePermission
from powerlab.modes.knobs.pci_cards import base, intel_gpu
from powerlab.modes.knobs.pci_cards.amd_gpu import AmdGpu
from powerlab.modes.knobs.pci_cards.intel_gpu import IntelGpu
from powerlab.sysroot import Sysroot

ADDRESS = "0000:03:00.0"
AMD, INTEL = f"/sys/bus/pci/drivers/amdgpu/{ADDRESS}", f"/sys/bus/pci/drivers/xe/{ADDRESS}"
KILLED = 9
CASES = {
    "amd-gpu-workstation": (AmdGpu(), "amd-gpu-limit=200W+amd-gpu-level=low"),
    "intel-gpu-workstation": (IntelGpu(), "intel-gpu-limit=100W+intel-gpu-max=1400MHz"),
}
EVERY = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def tree(name: str, tmp_path: Path) -> Sysroot:
    create_tree(name, tmp_path / "board")
    return Sysroot(tmp_path / "board")


def values(knob: Knob, sysroot: Sysroot) -> dict[str, str]:
    return {setting.target.removeprefix(f"{ADDRESS}."): setting.value for setting in knob.read(sysroot)}


@EVERY
def test_a_mode_is_set_and_what_was_there_is_put_back(name: str, tree: Sysroot, tmp_path: Path) -> None:
    knob, mode = CASES[name]
    before = values(knob, tree)
    controller = ModeController(tree, tmp_path / "state")
    with controller.applied(mode):
        now = values(knob, tree)
        assert controller.drifted(mode) is None
    wanted = {
        "amd_gpu": {"power_cap_uw": "200000000", "performance_level": "low"},
        "intel_gpu": {"power_limit_uw": "100000000", "max_mhz": "1400", "min_mhz": "400"},
    }
    assert now == wanted[knob.name]
    assert values(knob, tree) == before != now


@EVERY
@pytest.mark.parametrize("step", range(8))
def test_a_kill_at_any_write_is_undone(name: str, tree: Sysroot, tmp_path: Path, step: int) -> None:
    """Two settings are made and put back; the process dies before or after each of the four writes."""
    knob, mode = CASES[name]
    before = values(knob, tree)
    child = os.fork()
    if child == 0:
        _die_at(step)
        try:
            with ModeController(tree, tmp_path / "state").applied(mode):
                pass
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
    ModeController(tree, tmp_path / "state").recover()
    assert values(knob, tree) == before


def _die_at(step: int) -> None:
    """End this process before (even) or after (odd) a write of the knobs' modules."""
    passed = 0

    def around(write):
        def watched(*arguments):
            nonlocal passed
            for moment in (lambda: None, lambda: write(*arguments)):
                moment()
                if passed == step:
                    os._exit(KILLED)
                passed += 1

        return watched

    base.write_value = around(base.write_value)
    intel_gpu.write_high = around(intel_gpu.write_high)


@EVERY
def test_settings_lie_within_what_the_helper_may_do(name: str, tree: Sysroot) -> None:
    knob = CASES[name][0]
    files = [permission for permission in knob.permissions if isinstance(permission, FilePermission)]
    wanted = {
        f"{AMD}/hwmon/hwmon3/power1_cap": "200000000",
        f"{AMD}/power_dpm_force_performance_level": "low",
        f"{INTEL}/hwmon/hwmon4/power1_max": "100000000",
        f"{INTEL}/tile0/gt0/freq0/max_freq": "1400",
    }
    there = {path: text for path, text in wanted.items() if tree.path(path).exists()}
    assert len(there) == 2
    assert all(any(one.covers(path, text) for one in files) for path, text in there.items())
    assert not any(one.covers("/sys/class/hwmon/hwmon3/power1_cap", "200000000") for one in files)


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("amd-gpu-workstation", "amd-gpu-limit=100W", "takes 150 to 290 W"),
        ("amd-gpu-workstation", "amd-gpu-limit=250.5W", "states no number in W"),
        ("amd-gpu-workstation", "amd-gpu-level=manual", "the levels are auto, low"),
        ("intel-gpu-workstation", "intel-gpu-limit=500W", "takes 1 to 190 W"),
        ("intel-gpu-workstation", "intel-gpu-max=99MHz", "is 400 to 2850 MHz"),
        ("intel-gpu-workstation", "amd-gpu-level=low", "no AMD card here"),
    ],
)
def test_what_a_card_cannot_do_is_refused(name: str, mode: str, words: str, tree: Sysroot) -> None:
    with pytest.raises(PowerlabError, match=words):
        (AmdGpu() if mode.startswith("amd") else IntelGpu()).parse(tree, mode)


@pytest.mark.parametrize("name", ["amd-gpu-workstation"])
def test_clocks_that_were_chosen_by_hand_are_not_replaced(name: str, tree: Sysroot) -> None:
    tree.path(f"{AMD}/power_dpm_force_performance_level").write_text("manual\n")
    assert [mode.name for mode in AmdGpu().modes(tree) if "level" in mode.name] == []
    with pytest.raises(PowerlabError, match="chosen by hand"):
        AmdGpu().parse(tree, "amd-gpu-level=low")


@pytest.mark.parametrize("knob", [AmdGpu(), IntelGpu()], ids=lambda knob: knob.name)
def test_a_machine_without_such_cards_has_no_knob(knob: Knob, tmp_path: Path) -> None:
    assert knob.probe(Sysroot(tmp_path)).availability is Availability.ABSENT
    assert [*knob.read(Sysroot(tmp_path)), *knob.modes(Sysroot(tmp_path))] == []
    with pytest.raises(PowerlabError, match="has no setting"):
        knob.write(Sysroot(tmp_path), Setting(knob=knob.name, target=f"{ADDRESS}.x", value="1"))


def test_the_older_driver_s_clocks_and_a_limit_that_is_off(tmp_path: Path) -> None:
    device = f"/sys/bus/pci/drivers/i915/{ADDRESS}"
    files = {
        "hwmon/hwmon1/power1_max": "0",
        "hwmon/hwmon1/power1_rated_max": "190000000",
        **{f"drm/card1/gt_{name}_freq_mhz": text for name, text in (("min", "300"), ("max", "2400"))},
        **{f"drm/card1/gt_{name}_freq_mhz": text for name, text in (("RPn", "300"), ("RP0", "2400"))},
    }
    for name, text in files.items():
        path = tmp_path / device.lstrip("/") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    sysroot = Sysroot(tmp_path)
    assert values(IntelGpu(), sysroot) == {"power_limit_uw": "0", "max_mhz": "2400", "min_mhz": "300"}
    assert IntelGpu().probe(sysroot).detail == f"{ADDRESS}: power not limited, 300 to 2400 MHz"
    assert "intel-gpu-limit=95W" in [mode.name for mode in IntelGpu().modes(sysroot)]
