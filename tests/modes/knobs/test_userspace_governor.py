"""A clock that somebody holds with the governor ``userspace``: started anew the governor would hold another one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.controller import ModeController
from powerlab.modes.io.files import write_value
from powerlab.modes.knobs.cpufreq import knob as cpufreq
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.sysroot import Sysroot

POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
Put = Callable[[str, str], None]


@pytest.fixture
def held(board: Sysroot, put: Put, monkeypatch: pytest.MonkeyPatch) -> Sysroot:
    """A cluster held at 1.1904 GHz, whose governor behaves as the kernel's does (cpufreq_userspace.c)."""
    put(f"{POLICY0}/scaling_governor", "userspace")
    put(f"{POLICY0}/scaling_setspeed", "1190400")

    def as_the_kernel(sysroot: Sysroot, path: str, value: str) -> None:
        write_value(sysroot, path, value)
        if path == f"{POLICY0}/scaling_governor":
            write_value(sysroot, f"{POLICY0}/scaling_setspeed", "115200" if value == "userspace" else "<unsupported>")

    monkeypatch.setattr(cpufreq, "write_value", as_the_kernel)
    return board


def test_the_clock_is_put_back(held: Sysroot, state_dir: Path) -> None:
    with ModeController(held, state_dir).applied("governor=performance"):
        assert held.read(f"{POLICY0}/scaling_setspeed") == "<unsupported>"
    assert held.read(f"{POLICY0}/scaling_governor") == "userspace"
    assert held.read(f"{POLICY0}/scaling_setspeed") == "1190400"


def test_a_clock_that_hardware_rounds_is_nobody_s_change(held: Sysroot, state_dir: Path, put: Put) -> None:
    controller = ModeController(held, state_dir)
    with controller.applied("cpu-max=1420800kHz"):
        put(f"{POLICY0}/scaling_setspeed", "1190000")
        assert controller.drifted("cpu-max=1420800kHz") is None
        put(f"{POLICY0}/scaling_governor", "schedutil")
        assert "policy0.governor" in str(controller.drifted("cpu-max=1420800kHz"))


def test_another_governor_has_no_such_setting(board: Sysroot, put: Put) -> None:
    put(f"{POLICY0}/scaling_setspeed", "<unsupported>")
    assert not [setting for setting in CpuFreq().read(board) if setting.target.endswith("setspeed_khz")]
    with pytest.raises(PowerlabError, match=r"no setting .*\.setspeed_khz"):
        CpuFreq().write(board, Setting(knob="cpufreq", target="policy0.speed", value="1"))
