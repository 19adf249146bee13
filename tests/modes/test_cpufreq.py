from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, Setting
from powerlab.domain.power import Availability
from powerlab.modes import cpufreq as module
from powerlab.modes.cpufreq import CpuFreq
from powerlab.sysroot import Sysroot

POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
POLICY6 = "/sys/devices/system/cpu/cpufreq/policy6"
Put = Callable[[str, str], None]


def test_a_machine_without_cpufreq_says_so_and_offers_nothing(tmp_path: Path) -> None:
    knob, nothing = CpuFreq(), Sysroot(tmp_path)
    assert knob.probe(nothing).availability is Availability.ABSENT
    assert list(knob.modes(nothing)) == []
    assert list(knob.read(nothing)) == []


def test_the_modes_are_governors_and_caps_from_the_clock_table(board: Sysroot) -> None:
    modes = {mode.name: mode for mode in CpuFreq().modes(board)}
    assert set(modes) == {
        *(f"governor={name}" for name in ("powersave", "schedutil", "ondemand", "performance")),
        *(f"cpu-max={khz}kHz" for khz in (576000, 1113600, 1728000)),
    }
    assert all(mode.origin is ModeOrigin.INVENTED for mode in modes.values())
    assert modes["governor=powersave"].settings[3] == Setting(
        knob="cpufreq", target="policy6.governor", value="powersave"
    )
    # The lower limit of 1190400 kHz has to come down with the upper one, but only where it is above it.
    assert modes["cpu-max=576000kHz"].settings[0].value == "576000-576000"
    assert modes["cpu-max=1728000kHz"].settings[0].value == "1190400-1728000"


def test_a_cap_never_raises_a_limit(board: Sysroot, put: Put) -> None:
    for policy in (0, 2, 4, 6):
        put(f"/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq", "1190400")
    names = [mode.name for mode in CpuFreq().modes(board)]
    assert "cpu-max=1113600kHz" in names
    assert "cpu-max=1728000kHz" not in names
    put(f"{POLICY0}/scaling_max_freq", "2265600")
    big = next(mode for mode in CpuFreq().modes(board) if mode.name == "cpu-max=1728000kHz")
    assert [setting.value for setting in big.settings] == ["1190400-1728000"] + ["1190400-1190400"] * 3


def test_a_governor_that_one_cluster_lacks_is_not_offered(board: Sysroot, put: Put) -> None:
    put(f"{POLICY6}/scaling_available_governors", "powersave userspace")
    names = [mode.name for mode in CpuFreq().modes(board)]
    assert [name for name in names if name.startswith("governor")] == ["governor=powersave"]


def test_an_offline_cluster_is_left_alone(board: Sysroot, put: Put) -> None:
    put("/sys/devices/system/cpu/cpu6/online", "0")
    knob = CpuFreq()
    assert len(knob.read(board)) == 8, "one core of the cluster is still there"
    put("/sys/devices/system/cpu/cpu7/online", "0")
    assert {setting.target.partition(".")[0] for setting in knob.read(board)} == {"policy0", "policy2", "policy4"}
    assert all(not setting.target.startswith("policy6") for mode in knob.modes(board) for setting in mode.settings)


def test_a_core_that_cannot_be_taken_off_line_is_on_line(board: Sysroot) -> None:
    for core in (0, 1):
        board.path(f"/sys/devices/system/cpu/cpu{core}/online").unlink()
    assert CpuFreq().read(board)[0].target == "policy0.governor"


def test_a_driver_without_a_clock_table_gets_round_caps(board: Sysroot) -> None:
    for policy in (0, 2, 4, 6):
        board.path(f"/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_available_frequencies").unlink()
    names = [mode.name for mode in CpuFreq().modes(board) if mode.name.startswith("cpu-max")]
    assert names == ["cpu-max=600000kHz", "cpu-max=1100000kHz", "cpu-max=1700000kHz"]


def test_what_is_written_reads_back_and_a_shorter_text_leaves_nothing_behind(board: Sysroot) -> None:
    knob = CpuFreq()
    for target, value in (("policy0.governor", "powersave"), ("policy0.range_khz", "115200-998400")):
        setting = Setting(knob="cpufreq", target=target, value=value)
        knob.write(board, setting)
        assert setting in knob.read(board)
    assert board.path(f"{POLICY0}/scaling_governor").read_text() == "powersave\n"
    assert board.path(f"{POLICY0}/scaling_max_freq").read_text() == "998400\n"


def test_a_setting_that_does_not_exist_is_refused(board: Sysroot) -> None:
    with pytest.raises(PowerlabError, match="has no setting"):
        CpuFreq().write(board, Setting(knob="cpufreq", target="policy0.colour", value="red"))
    with pytest.raises(PowerlabError, match="policy9/scaling_governor does not take"):
        CpuFreq().write(board, Setting(knob="cpufreq", target="policy9.governor", value="powersave"))


def test_a_user_who_may_not_write_is_told_what_to_do(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    probe = CpuFreq().probe(board)
    assert probe.availability is Availability.DENIED
    assert "4 clusters, governor schedutil" in probe.detail
    assert "root" in probe.remedy


def test_nothing_of_it_survives_a_reboot(board: Sysroot) -> None:
    knob = CpuFreq()
    assert not any(knob.survives_reboot(setting) for setting in knob.read(board))
