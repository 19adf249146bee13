from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, Setting
from powerlab.domain.power import Availability
from powerlab.modes.knobs.nvpmodel import knob as module
from powerlab.modes.knobs.nvpmodel import program as nvpmodel_program
from powerlab.modes.knobs.nvpmodel.knob import Nvpmodel
from powerlab.sysroot import Sysroot

STATUS = "/var/lib/nvpmodel/status"
GPU = "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
Put = Callable[[str, str], None]


def setting(target: str, value: str) -> Setting:
    return Setting(knob="nvpmodel", target=target, value=value)


def replace_program(board: Sysroot, script: str) -> None:
    board.path("/usr/sbin/nvpmodel").write_text(f"#!/bin/sh\n{script}\n")


def test_a_machine_without_nvpmodel_says_so(tmp_path: Path) -> None:
    knob, nothing = Nvpmodel(), Sysroot(tmp_path)
    assert knob.probe(nothing).availability is Availability.ABSENT
    assert list(knob.read(nothing)) == []


def test_the_modes_are_those_of_the_devices_own_table(board: Sysroot) -> None:
    modes = {mode.name: mode for mode in Nvpmodel().modes(board)}
    assert list(modes) == [
        "MAXN", "MODE_10W", "MODE_15W", "MODE_30W_ALL",
        "MODE_30W_6CORE", "MODE_30W_4CORE", "MODE_30W_2CORE", "MODE_15W_DESKTOP",
    ]  # fmt: skip
    assert [mode.online_cores for mode in modes.values()] == [8, 2, 4, 8, 6, 4, 2, 4]
    assert [name for name, mode in modes.items() if mode.requires_reboot] == ["MODE_10W"]
    assert all(mode.origin is ModeOrigin.VENDOR for mode in modes.values())
    fifteen = modes["MODE_15W"]
    assert fifteen.settings == (setting("mode", "2"),)
    assert fifteen.description == "4 cores, CPU up to 1200 MHz, GPU up to 670 MHz, EMC up to 1331.2 MHz"
    assert modes["MAXN"].description == "8 cores, CPU uncapped, GPU uncapped, EMC uncapped"


def test_the_numbers_need_not_be_dense(board: Sysroot) -> None:
    conf = board.path("/etc/nvpmodel.conf")
    conf.write_text(conf.read_text().replace("ID=7 ", "ID=207 "))
    knob = Nvpmodel()
    assert list(knob.modes(board))[-1].settings == (setting("mode", "207"),)
    knob.write(board, setting("mode", "207"))
    assert knob.read(board)[0] == setting("mode", "207")


def test_setting_a_mode_takes_cores_off_line_and_caps_clocks(board: Sysroot) -> None:
    knob = Nvpmodel()
    knob.write(board, setting("mode", "2"))
    found = {item.target: item.value for item in knob.read(board)}
    assert found["mode"] == "2"
    assert [found[f"CPU_ONLINE.CORE_{core}"] for core in range(8)] == list("11110000")
    assert found["GPU"] == "318750000-624750000"
    assert found["EMC.MAX_FREQ"] == "1331200000"
    assert board.read("/sys/devices/system/cpu/online") == "0,1,2,3"
    assert not any("CPU_DENVER" in target for target in found), "CPU clocks belong to cpufreq"


def test_a_mode_that_needs_a_reboot_is_refused_in_the_devices_own_words(board: Sysroot) -> None:
    knob = Nvpmodel()
    before = list(knob.read(board))
    with pytest.raises(PowerlabError) as refusal:
        knob.write(board, setting("mode", "1"))
    said = str(refusal.value)
    assert "MODE_10W" in said
    assert "stays in MAXN" in said
    assert "Reboot required for changing to this power mode: 1" in said
    assert "optMask is 1" in said
    assert "fan mode" not in said
    assert list(knob.read(board)) == before


def test_a_mode_that_is_not_in_the_table_is_refused(board: Sysroot) -> None:
    with pytest.raises(PowerlabError, match="no mode number 42"):
        Nvpmodel().write(board, setting("mode", "42"))


def test_a_custom_mode_is_shown_and_its_files_are_recorded(board: Sysroot, put: Put) -> None:
    put(STATUS, "pmode:0099")
    knob = Nvpmodel()
    probe = knob.probe(board)
    assert probe.availability is Availability.AVAILABLE
    assert "no mode of the table" in probe.detail
    found = {item.target: item.value for item in knob.read(board)}
    assert "mode" not in found
    assert found["CPU_ONLINE.CORE_7"] == "1"


def test_what_was_changed_by_hand_can_be_set_back_file_by_file(board: Sysroot, put: Put) -> None:
    put(f"{GPU}/min_freq", "905250000")
    put("/sys/devices/system/cpu/cpu7/online", "0")
    knob = Nvpmodel()
    by_hand = list(knob.read(board))
    knob.write(board, setting("mode", "0"))
    assert list(knob.read(board)) != by_hand
    for item in by_hand:
        knob.write(board, item)
    assert list(knob.read(board)) == by_hand


def test_a_setting_the_conf_does_not_define_is_refused(board: Sysroot) -> None:
    for target in ("NOTHING.AT_ALL", "CPU_DENVER_0", "GPU.MAX_FREQ"):
        with pytest.raises(PowerlabError, match="no longer defines"):
            Nvpmodel().write(board, setting(target, "1"))


def test_files_this_kernel_lacks_are_passed_over(board: Sysroot) -> None:
    board.path("/sys/devices/17000000.gv11b/tpc_pg_mask").unlink()
    targets = [item.target for item in Nvpmodel().read(board)]
    assert "TPC_POWER_GATING.TPC_PG_MASK" not in targets
    assert "GPU_POWER_CONTROL_ENABLE.GPU_PWR_CNTL_EN" in targets


def test_only_the_mode_survives_a_reboot(board: Sysroot) -> None:
    knob = Nvpmodel()
    assert [item.target for item in knob.read(board) if knob.survives_reboot(item)] == ["mode"]


def test_a_broken_table_or_program_is_told_by_the_probe(board: Sysroot) -> None:
    knob = Nvpmodel()
    board.path("/usr/sbin/nvpmodel").chmod(0o644)
    assert knob.probe(board).availability is Availability.BROKEN
    board.path("/usr/sbin/nvpmodel").chmod(0o755)
    board.path("/etc/nvpmodel.conf").write_text("nothing\n")
    probe = knob.probe(board)
    assert probe.availability is Availability.BROKEN
    assert "defines no power mode" in probe.detail


def test_a_user_who_may_not_write_is_told_what_to_do(board: Sysroot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    probe = Nvpmodel().probe(board)
    assert probe.availability is Availability.DENIED
    assert "in MAXN" in probe.detail
    assert "root" in probe.remedy


def test_a_program_that_asks_gets_no_answer_and_one_that_hangs_is_ended(
    board: Sysroot, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_program(board, 'read answer && echo "got $answer" || echo "no input"')
    assert nvpmodel_program.run_nvpmodel(board, "-m", "1") == "no input\n"
    monkeypatch.setattr(nvpmodel_program, "TIMEOUT_S", 0.05)
    replace_program(board, "exec sleep 60")
    with pytest.raises(PowerlabError, match="did not end within"):
        nvpmodel_program.run_nvpmodel(board, "-q")


def test_a_program_that_lies_about_success_is_found_out(board: Sysroot) -> None:
    replace_program(board, '[ "$1" = -q ] && printf "NV Power Mode: MAXN\\n0\\n"; exit 0')
    with pytest.raises(PowerlabError, match="did not set MODE_15W, the device stays in MAXN; it said: nothing"):
        Nvpmodel().write(board, setting("mode", "2"))


def test_a_core_that_no_mode_switches_counts_in_every_mode(tmp_path: Path) -> None:
    """The TX2's table leaves out core 0: MAXQ has four cores, not three."""
    create_tree("jetson-tx2", tmp_path / "tx2")
    modes = Nvpmodel().modes(Sysroot(tmp_path / "tx2"))
    assert {mode.name: mode.online_cores for mode in modes} == {
        "MAXN": 6,
        "MAXQ": 4,
        "MAXP_CORE_ALL": 6,
        "MAXP_CORE_ARM": 4,
        "MAXP_CORE_DENVER": 2,
    }
    assert modes[1].description.startswith("4 cores")


def test_a_changed_power_gating_mask_tells_that_a_mode_needs_a_reboot(board: Sysroot, put: Put) -> None:
    conf = board.path("/etc/nvpmodel.conf")
    text = conf.read_text()
    conf.write_text(text.replace("TPC_POWER_GATING TPC_PG_MASK 0", "TPC_POWER_GATING TPC_PG_MASK 0x0", 1))

    def rebooting() -> list[str]:
        return [mode.name for mode in Nvpmodel().modes(board) if mode.requires_reboot]

    assert rebooting() == ["MODE_10W"]
    put("/sys/devices/17000000.gv11b/tpc_pg_mask", "1")
    assert "MODE_10W" not in rebooting(), "the board was booted into its mask"
    assert len(rebooting()) == 7


def test_where_no_mask_can_be_read_what_is_known_of_the_board_decides(board: Sysroot) -> None:
    board.path("/sys/devices/17000000.gv11b/tpc_pg_mask").unlink()
    assert [mode.name for mode in Nvpmodel().modes(board) if mode.requires_reboot] == ["MODE_10W"]


def test_a_name_belongs_to_it_only_where_the_table_has_it(board: Sysroot) -> None:
    mode = Nvpmodel().parse(board, "MODE_30W_ALL")
    assert mode is not None
    assert mode.settings == (setting("mode", "3"),)
    assert Nvpmodel().parse(board, "MODE_30W") is None
