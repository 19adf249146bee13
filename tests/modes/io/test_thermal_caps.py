"""A hot device: its kernel holds clocks down, and shows that where the limits stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.controller import ModeController
from powerlab.modes.io import frequency_range, thermal_caps
from powerlab.modes.io.files import write_value
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

COOLING = "/sys/class/thermal/cooling_device0"
POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
Put = Callable[[str, str], None]
Make = Callable[[dict[str, str]], Sysroot]


@pytest.mark.parametrize(
    ("kind", "state", "held"),
    [
        ("thermal-cpufreq-0", "3", True),
        ("cpufreq-cpu0", "1", True),
        ("thermal-devfreq-0", "2", True),
        ("Processor", "1", True),
        ("gpu-balanced", "1", True),
        ("cpufreq-cpu0", "0", False),
        ("pwm-fan", "4", False),
        ("intel_powerclamp", "-1", False),
        ("intel_powerclamp", "20", False),
        ("cpufreq-cpu0", "much", False),
        ("", "1", False),
    ],
)
def test_what_holds_a_clock_down(make_tree: Make, kind: str, state: str, held: bool) -> None:
    assert thermal_caps.holds(make_tree({f"{COOLING}/type": kind, f"{COOLING}/cur_state": state})) is held


@pytest.mark.parametrize(
    ("target", "wanted", "found", "explained"),
    [
        ("policy0.max_khz", "2265600", "1190400", True),
        ("17000000.gv11b.max_hz", "1377000000", "905250000", True),
        ("GPU", "114750000-1377000000", "114750000-905250000", True),
        ("policy0.max_khz", "1190400", "2265600", False),
        ("policy0.min_khz", "1190400", "806400", True),
        ("policy0.min_khz", "806400", "1190400", False),
        ("policy0.governor", "performance", "powersave", False),
        ("GPU", "114750000-1377000000", "318750000-905250000", False),
        ("GPU", "114750000-905250000", "114750000-1377000000", False),
        ("cpu3", "1", "0", False),
        ("mode", "3", "2", False),
    ],
)
def test_only_a_lower_limit_is_explained_by_heat(
    make_tree: Make, target: str, wanted: str, found: str, explained: bool
) -> None:
    setting = Setting(knob="any", target=target, value=wanted)
    hot = make_tree({f"{COOLING}/type": "cpufreq-cpu0", f"{COOLING}/cur_state": "1"})
    assert thermal_caps.explains(hot, setting, found) is explained
    hot.path(f"{COOLING}/cur_state").write_text("0\n")
    assert not thermal_caps.explains(hot, setting, found), "a cool device explains nothing"


def test_a_mode_on_a_device_that_gets_hot_is_put_back_and_nobody_is_blamed(
    board: Sysroot, controller: ModeController, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(sysroot: Sysroot, path: str, value: str) -> None:
        asked.setdefault(path, []).append(value)
        write_value(sysroot, path, str(min(int(value), 806400)))

    asked: dict[str, list[str]] = {}
    with controller.applied("cpu-max=1728000kHz"):
        put(f"{COOLING}/type", "cpufreq-cpu0")
        put(f"{COOLING}/cur_state", "5")
        put(f"{POLICY0}/scaling_max_freq", "1190400")
        assert controller.drifted("cpu-max=1728000kHz") is None
        put(f"{POLICY0}/scaling_governor", "powersave")
        assert "policy0.governor" in (controller.drifted("cpu-max=1728000kHz") or "")
        monkeypatch.setattr(frequency_range, "write_value", held)
    assert asked[f"{POLICY0}/scaling_max_freq"] == ["2265600"], "the kernel was asked for what it was, and that stays"
    assert board.read(f"{POLICY0}/scaling_governor") == "schedutil"


def test_a_device_that_is_hot_already_is_not_changed(board: Sysroot, tmp_path: Path, put: Put) -> None:
    """What its limits are set to cannot be read while heat holds them lower."""
    put(f"{COOLING}/type", "cpufreq-cpu0")
    put(f"{COOLING}/cur_state", "5")
    board.path(SIMULATION_MARKER).unlink()
    controller = ModeController(board, tmp_path / "state")
    with pytest.raises(PowerlabError, match="let it cool down"), controller.applied("cpu-max=1728000kHz"):
        pytest.fail("not set")
    assert board.read(f"{POLICY0}/scaling_max_freq") == "2265600"
    with controller.applied("current"):
        pass
