from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.io import frequency_range
from powerlab.modes.io.files import write_value
from powerlab.modes.knobs.cpufreq import knob as module
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.sysroot import Sysroot

POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
POLICY6 = "/sys/devices/system/cpu/cpufreq/policy6"
Put = Callable[[str, str], None]


def setting(target: str, value: str) -> Setting:
    return Setting(knob="cpufreq", target=target, value=value)


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
    assert modes["governor=powersave"].settings[3] == setting("policy6.governor", "powersave")
    assert modes["cpu-max=576000kHz"].settings[0] == setting("policy0.max_khz", "576000")


def test_a_cap_that_would_raise_a_limit_is_not_offered_but_can_be_asked_for(board: Sysroot, put: Put) -> None:
    for policy in (0, 2, 4, 6):
        put(f"/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_max_freq", "1190400")
    names = [mode.name for mode in CpuFreq().modes(board)]
    assert "cpu-max=1113600kHz" in names
    assert "cpu-max=1728000kHz" not in names
    asked_for = CpuFreq().parse(board, "cpu-max=1728000kHz")
    assert asked_for is not None
    assert {item.value for item in asked_for.settings} == {"1728000"}, "a name means the same on every day"


@pytest.mark.parametrize(
    ("name", "khz", "words"),
    [
        ("cpu-max=1200000kHz", "1190400", "CPU clocks up to 1.19 GHz"),
        ("cpu-max=1190400kHz", "1190400", "CPU clocks up to 1.19 GHz"),
        ("cpu-min=1200000kHz", "1267200", "CPU clocks from 1.27 GHz"),
        ("cpu-max=2265600kHz", "2265600", "CPU clocks up to 2.27 GHz"),
        ("cpu-min=115200kHz", "115200", "CPU clocks from 0.12 GHz"),
    ],
)
def test_a_limit_is_rounded_so_that_it_holds_and_keeps_its_name(
    board: Sysroot, name: str, khz: str, words: str
) -> None:
    mode = CpuFreq().parse(board, name)
    assert mode is not None
    assert mode.name == name, "results are filed under the name that was asked for"
    assert {item.value for item in mode.settings} == {khz}
    assert mode.description.startswith(words)


def test_a_cap_is_rounded_for_each_cluster_by_itself(board: Sysroot, put: Put) -> None:
    put(f"{POLICY6}/scaling_available_frequencies", "300000 900000 1800000")
    mode = CpuFreq().parse(board, "cpu-max=1200000kHz")
    assert mode is not None
    assert [item.value for item in mode.settings] == ["1190400"] * 3 + ["900000"]
    assert "0.90 and 1.19 GHz" in mode.description
    low = CpuFreq().parse(board, "cpu-max=200000kHz")
    assert low is not None
    assert [item.value for item in low.settings] == ["192000"] * 3 + ["300000"], "as low as that cluster goes"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cpu-max=1kHz", "go from 115200 to 2265600 kHz"),
        ("cpu-max=2265601kHz", "go from 115200 to 2265600 kHz"),
        ("cpu-min=99999999kHz", "go from"),
        ("cpu-max=1190400", "states no number in kHz"),
        ("cpu-max=-5kHz", "states no number"),
        ("cpu-max=kHz", "write it like cpu-max=1190400kHz"),
        ("governor=turbo", "choose from what every cluster has"),
        ("governor=", "choose from"),
        ("epp=power", "this CPU's driver has no such choice"),
    ],
)
def test_what_is_impossible_is_refused_with_what_is_possible(board: Sysroot, name: str, says: str) -> None:
    with pytest.raises(PowerlabError, match=says):
        CpuFreq().parse(board, name)


@pytest.mark.parametrize("name", ["current", "MAXN", "cores=4", "cpu-max", "cpu-max=1190400kHz+cores=4", "", "="])
def test_other_names_are_not_its_own(board: Sysroot, name: str) -> None:
    assert CpuFreq().parse(board, name) is None


def test_a_limit_takes_the_opposite_one_along_where_it_is_in_the_way(board: Sysroot) -> None:
    knob = CpuFreq()
    knob.write(board, setting("policy0.max_khz", "576000"))
    assert limits_of(board) == (576000, 576000)
    knob.write(board, setting("policy0.min_khz", "1190400"))
    assert limits_of(board) == (1190400, 1190400)
    knob.write(board, setting("policy0.max_khz", "2265600"))
    assert limits_of(board) == (1190400, 2265600), "and only where it is"


def test_limits_from_both_sides_are_one_mode(board: Sysroot, controller: ModeController, put: Put) -> None:
    put(f"{POLICY0}/scaling_min_freq", "1344000")
    with controller.applied("cpu-max=1190400kHz+cpu-min=806400kHz"):
        assert limits_of(board) == (806400, 1190400)
    assert limits_of(board) == (1344000, 2265600)
    with (
        pytest.raises(PowerlabError, match="did not take effect"),
        controller.applied("cpu-max=806400kHz+cpu-min=1190400kHz"),
    ):
        pytest.fail("the limits contradict each other")
    assert limits_of(board) == (1344000, 2265600)


def test_a_limit_that_the_kernel_rounds_is_told_with_what_it_made_of_it(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kernel that resolves limits to its table does, or one where heat holds a lower limit."""

    def rounding(sysroot: Sysroot, path: str, value: str) -> None:
        write_value(sysroot, path, "1190400" if path.endswith("max_freq") else value)

    monkeypatch.setattr(frequency_range, "write_value", rounding)
    with pytest.raises(PowerlabError, match=r"was set to 1200000 and reads 1190400.*ask for 1190400"):
        CpuFreq().write(board, setting("policy0.max_khz", "1200000"))


def limits_of(board: Sysroot) -> tuple[int, int]:
    return int(board.read(f"{POLICY0}/scaling_min_freq")), int(board.read(f"{POLICY0}/scaling_max_freq"))


@pytest.fixture
def laptop(tmp_path: Path) -> Sysroot:
    create_tree("laptop", tmp_path / "laptop")
    return Sysroot(tmp_path / "laptop")


def test_energy_preferences_are_offered_where_the_driver_has_them(laptop: Sysroot) -> None:
    names = [mode.name for mode in CpuFreq().modes(laptop) if mode.name.startswith("epp")]
    assert names == ["epp=performance", "epp=balance_performance", "epp=balance_power", "epp=power"]
    assert "epp=default" not in names, "it reads back as the one it stands for"
    with pytest.raises(PowerlabError, match="choose from"):
        CpuFreq().parse(laptop, "epp=default")
    mode = CpuFreq().parse(laptop, "epp=power")
    assert mode is not None
    for item in mode.settings:
        CpuFreq().write(laptop, item)
        assert item in CpuFreq().read(laptop)


def test_an_energy_preference_is_refused_under_the_performance_governor(laptop: Sysroot, state_dir: Path) -> None:
    """The drivers answer EBUSY there (kernel, intel_pstate and amd-pstate)."""
    controller = ModeController(laptop, state_dir)
    with controller.applied("governor=performance"):
        assert not any(mode.name.startswith("epp") for mode in CpuFreq().modes(laptop))
        with pytest.raises(PowerlabError, match=r"governor is performance.*governor=powersave\+epp=power"):
            CpuFreq().write(laptop, setting("policy0.epp", "power"))
        present = laptop.read(f"{POLICY0}/energy_performance_preference")
        CpuFreq().write(laptop, setting("policy0.epp", present))
    with controller.applied("governor=powersave+epp=power"):
        assert laptop.read(f"{POLICY0}/energy_performance_preference") == "power"
    assert laptop.read(f"{POLICY0}/energy_performance_preference") == present


def test_a_governor_that_one_cluster_lacks_is_not_offered(board: Sysroot, put: Put) -> None:
    put(f"{POLICY6}/scaling_available_governors", "powersave userspace")
    names = [mode.name for mode in CpuFreq().modes(board)]
    assert [name for name in names if name.startswith("governor")] == ["governor=powersave"]


def test_an_offline_cluster_is_left_alone(board: Sysroot, put: Put) -> None:
    put("/sys/devices/system/cpu/cpu6/online", "0")
    knob = CpuFreq()
    assert len(knob.read(board)) == 12, "one core of the cluster is still there"
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
    for target, value in (("policy0.governor", "powersave"), ("policy0.max_khz", "960000")):
        knob.write(board, setting(target, value))
        assert setting(target, value) in knob.read(board)
    assert board.path(f"{POLICY0}/scaling_governor").read_text() == "powersave\n"
    assert board.path(f"{POLICY0}/scaling_max_freq").read_text() == "960000\n"


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
