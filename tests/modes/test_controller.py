from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs import gpu_devfreq, hotplug
from powerlab.modes.knobs.cpu_quota import knob as cpu_quota
from powerlab.modes.knobs.cpufreq import knob as cpufreq
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.modes.knobs.emc import knob as emc
from powerlab.modes.knobs.jetson_clocks import knob as jetson_clocks
from powerlab.modes.knobs.nvpmodel import knob as nvpmodel
from powerlab.modes.registry import KNOBS
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

BOOT_ID = "/proc/sys/kernel/random/boot_id"
STATUS = "/var/lib/nvpmodel/status"
POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
GPU = "/sys/devices/17000000.gv11b/devfreq/17000000.gv11b"
Put = Callable[[str, str], None]
Content = Callable[[Sysroot], dict[str, str]]


def leave_as_if_killed(board: Sysroot, state_dir: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply a mode and go away without putting anything back (really killed processes: test_kill.py)."""
    controller = ModeController(board, state_dir)
    with monkeypatch.context() as patch:
        patch.setattr(controller._board, "restore", lambda previous, touched: ())
        patch.setattr(controller._journal, "remove", lambda: None)
        with controller.applied(mode):
            pass


def test_what_resets_others_is_written_first_and_what_pins_them_last() -> None:
    names = [knob.name for knob in KNOBS]
    assert names[:4] == ["nvpmodel", "platform_profile", "hotplug", "cpufreq"]
    assert names[-1] == "jetson_clocks"
    assert len(names) == len(set(names))


def test_a_machine_without_knobs_has_the_mode_it_is_in(tmp_path: Path) -> None:
    controller = ModeController(Sysroot(tmp_path), tmp_path / "state")
    assert controller.modes() == (CURRENT_MODE,)
    assert [probe.availability for probe in controller.probes()] == [Availability.ABSENT] * len(KNOBS)
    assert all(probe.detail for probe in controller.probes()), "each says why"
    assert controller.recover() == ()
    with controller.applied("current"):
        assert controller.drifted("current") is None
    assert not (tmp_path / "state").exists(), "nothing is set, so nothing is written"


def test_the_current_mode_comes_first_and_names_are_unique(controller: ModeController) -> None:
    names = [mode.name for mode in controller.modes()]
    assert names[0] == "current"
    assert {"MAXN", "MODE_15W", "governor=powersave"} < set(names)
    assert len(names) == len(set(names))


def test_an_unknown_mode_is_refused_with_the_names_there_are(controller: ModeController) -> None:
    with pytest.raises(PowerlabError, match=r"no power mode 'TURBO'; choose one of: current, MAXN, .*MODE_15W"):
        controller.mode("TURBO")
    with pytest.raises(PowerlabError, match="no power mode"), controller.applied("TURBO"):
        pytest.fail("not set")


def test_every_mode_is_set_and_leaves_the_device_exactly_as_it_was(
    board: Sysroot, controller: ModeController, put: Put, content_of: Content
) -> None:
    put(f"{POLICY0}/scaling_governor", "ondemand")
    put(f"{POLICY0}/scaling_max_freq", "1881600")
    put(f"{GPU}/min_freq", "114750000")
    before = content_of(board)
    seen = set()
    for mode in controller.modes():
        if mode.requires_reboot:
            continue
        with controller.applied(mode.name) as applied:
            assert applied.name == mode.name
            assert controller.drifted(mode.name) is None
            seen.add(tuple(sorted(content_of(board).items())))
        assert content_of(board) == before, mode.name
    assert len(seen) >= 14, "the modes are different from each other"


def test_the_previous_settings_come_back_after_a_failing_sweep(
    board: Sysroot, controller: ModeController, content_of: Content
) -> None:
    before = content_of(board)
    with pytest.raises(KeyboardInterrupt), controller.applied("MODE_15W"):
        raise KeyboardInterrupt
    assert content_of(board) == before
    assert controller.unrestored() is None


def test_a_mode_that_needs_a_reboot_is_refused_unless_the_device_is_in_it(
    board: Sysroot, controller: ModeController, put: Put, content_of: Content
) -> None:
    before = content_of(board)
    with pytest.raises(PowerlabError, match="after a reboot"), controller.applied("MODE_10W"):
        pytest.fail("not set")
    assert content_of(board) == before
    put(STATUS, "pmode:0001")
    put("/sys/devices/17000000.gv11b/tpc_pg_mask", "1")
    with controller.applied("MODE_10W") as mode:
        assert mode.online_cores == 2
        assert board.read("/sys/devices/system/cpu/online") == "0,1"


def test_what_the_device_does_not_take_is_an_error_and_everything_is_put_back(
    board: Sysroot, state_dir: Path, content_of: Content
) -> None:
    class Deaf(CpuFreq):
        def write(self, sysroot: Sysroot, setting: Setting) -> None:
            if setting.target != "policy4.governor" or setting.value != "powersave":
                super().write(sysroot, setting)

    before = content_of(board)
    controller = ModeController(board, state_dir, knobs=(Deaf(),))
    refused = pytest.raises(PowerlabError, match=r"policy4\.governor should be powersave and reads schedutil")
    with refused, controller.applied("governor=powersave"):
        pytest.fail("not set")
    assert content_of(board) == before
    assert controller.unrestored() is None


def test_a_setting_that_cannot_be_put_back_is_told_and_the_journal_stays(
    board: Sysroot, state_dir: Path, content_of: Content
) -> None:
    class Stuck(CpuFreq):
        stuck = False

        def write(self, sysroot: Sysroot, setting: Setting) -> None:
            if self.stuck and setting.target == "policy2.governor":
                raise PowerlabError("policy2 is stuck")
            super().write(sysroot, setting)

    before = content_of(board)
    knob = Stuck()
    controller = ModeController(board, state_dir, knobs=(knob,))
    with pytest.raises(PowerlabError, match="policy2 is stuck"), controller.applied("governor=powersave"):
        knob.stuck = True
    assert board.read(f"{POLICY0}/scaling_governor") == "schedutil", "all others are back"
    assert controller.unrestored() is not None
    knob.stuck = False
    assert ModeController(board, state_dir).recover() != ()
    assert content_of(board) == before


def test_two_controllers_on_one_device_are_refused(board: Sysroot, controller: ModeController, tmp_path: Path) -> None:
    other = ModeController(board, tmp_path / "other state")
    with controller.applied("MODE_15W"):
        for attempt in (lambda: other.set("MAXN"), other.restore):
            with pytest.raises(PowerlabError, match=r"process \d+ is setting power modes on this device"):
                attempt()
        assert controller.drifted("MODE_15W") is None


def test_a_change_by_somebody_else_is_told_by_name(controller: ModeController, put: Put) -> None:
    with controller.applied("MODE_30W_ALL"):
        put(f"{POLICY0}/scaling_governor", "performance")
        told = controller.drifted("MODE_30W_ALL")
    assert told == (
        "somebody changed MODE_30W_ALL meanwhile: cpufreq policy0.governor should be schedutil and reads performance."
    )


def test_a_change_while_nothing_is_set_is_told_too(board: Sysroot, controller: ModeController, put: Put) -> None:
    with controller.applied("current"):
        put("/sys/devices/system/cpu/cpu7/online", "0")
        assert "CPU_ONLINE.CORE_7 should be 1 and reads 0" in (controller.drifted("current") or "")
    assert board.read("/sys/devices/system/cpu/cpu7/online") == "0", "`current` puts nothing back"


def test_drift_of_a_mode_that_is_not_applied_is_a_wrong_question(controller: ModeController) -> None:
    with pytest.raises(PowerlabError, match="is not applied now"):
        controller.drifted("MAXN")


def test_what_a_killed_process_left_is_undone_by_the_next_one_that_sets_a_mode(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(board)
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    assert content_of(board) != before
    controller = ModeController(board, state_dir)
    left = controller.unrestored()
    assert left is not None
    assert left.mode == "MODE_15W"
    with controller.applied("governor=powersave"):
        assert board.read("/sys/devices/system/cpu/online") == "0,1,2,3,4,5,6,7"
    assert content_of(board) == before


def test_recovery_is_idempotent(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(board)
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    first = ModeController(board, state_dir).recover()
    assert Setting(knob="nvpmodel", target="mode", value="0") in first
    assert ModeController(board, state_dir).recover() == ()
    assert content_of(board) == before


def test_after_a_reboot_only_what_outlives_it_is_put_back(
    board: Sysroot, state_dir: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"{POLICY0}/scaling_governor", "ondemand")
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    put(BOOT_ID, "another boot")
    put(f"{POLICY0}/scaling_governor", "interactive")
    written = ModeController(board, state_dir).recover()
    assert written == (Setting(knob="nvpmodel", target="mode", value="0"),)
    assert board.read(STATUS) == "pmode:0000"
    assert board.read(f"{POLICY0}/scaling_governor") == "interactive", "the new boot's own"
    assert ModeController(board, state_dir).unrestored() is None


def test_after_a_reboot_a_mode_chosen_since_stays(
    board: Sysroot, state_dir: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    put(BOOT_ID, "another boot")
    put(STATUS, "pmode:0003")
    assert ModeController(board, state_dir).recover() == ()
    assert board.read(STATUS) == "pmode:0003"


def test_after_a_reboot_clock_settings_are_forgotten(
    board: Sysroot, state_dir: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_as_if_killed(board, state_dir, "governor=powersave", monkeypatch)
    put(BOOT_ID, "another boot")
    assert ModeController(board, state_dir).recover() == ()
    assert board.read(f"{POLICY0}/scaling_governor") == "powersave"
    assert ModeController(board, state_dir).unrestored() is None


def test_a_damaged_journal_sets_nothing_and_is_told_once(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    path = next(state_dir.rglob("journal.json"))
    path.write_bytes(path.read_bytes()[:100])
    left = content_of(board)
    with pytest.raises(PowerlabError, match="damaged"):
        ModeController(board, state_dir).recover()
    assert content_of(board) == left
    assert ModeController(board, state_dir).recover() == ()


def test_a_mode_set_to_stay_stays_until_it_is_taken_back(board: Sysroot, state_dir: Path, content_of: Content) -> None:
    before = content_of(board)
    assert ModeController(board, state_dir).set("MODE_15W").name == "MODE_15W"
    ModeController(board, state_dir).set("MODE_30W_2CORE")
    kept = content_of(board)
    assert ModeController(board, state_dir).recover() == (), "it is no accident"
    with ModeController(board, state_dir).applied("MAXN"):
        pass
    assert content_of(board) == kept
    first = ModeController(board, state_dir).persistent()
    assert first is not None
    assert first.mode == "MODE_15W"
    assert ModeController(board, state_dir).restore() != ()
    assert content_of(board) == before, "as before the first of them"
    assert ModeController(board, state_dir).restore() == ()


def test_a_mode_that_cannot_be_set_to_stay_changes_nothing(
    board: Sysroot, controller: ModeController, content_of: Content
) -> None:
    before = content_of(board)
    for name, says in (("current", "nothing to set"), ("MODE_10W", "reboot"), ("TURBO", "no power mode")):
        with pytest.raises(PowerlabError, match=says):
            controller.set(name)
    assert content_of(board) == before
    assert controller.persistent() is None


def test_a_refusal_while_setting_to_stay_puts_everything_back(
    board: Sysroot, state_dir: Path, content_of: Content
) -> None:
    class Half(CpuFreq):
        def parse(self, sysroot: Sysroot, name: str) -> PowerMode:
            good = Setting(knob="cpufreq", target="policy0.governor", value="powersave")
            bad = Setting(knob="cpufreq", target="policy9.governor", value="powersave")
            return PowerMode(name="half", settings=(good, bad))

    before = content_of(board)
    controller = ModeController(board, state_dir, knobs=(Half(),))
    with pytest.raises(PowerlabError, match="policy9"):
        controller.set("half")
    assert content_of(board) == before
    assert controller.persistent() is None


def test_a_knob_that_may_not_be_turned_offers_no_modes(
    controller: ModeController, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (nvpmodel, hotplug, cpufreq, gpu_devfreq, emc, cpu_quota):
        monkeypatch.setattr(module, "can_write", lambda sysroot, path: False)
    monkeypatch.setattr(jetson_clocks, "may_set", lambda sysroot, knob: False)
    monkeypatch.setattr(client, "may_set", lambda sysroot, knob: False)
    assert controller.modes() == (CURRENT_MODE,)
    denied = [probe for probe in controller.probes() if probe.availability is not Availability.ABSENT]
    assert [probe.availability for probe in denied] == [Availability.DENIED] * 7
    assert all("may not change it" in probe.detail and "root" in probe.remedy for probe in denied)


def test_a_broken_nvpmodel_does_not_keep_cpufreq_from_working(
    board: Sysroot, controller: ModeController, content_of: Content
) -> None:
    board.path("/etc/nvpmodel.conf").write_text("nothing\n")
    before = content_of(board)
    with controller.applied("governor=powersave"):
        assert board.read(f"{POLICY0}/scaling_governor") == "powersave"
    assert content_of(board) == before


def test_a_custom_mode_is_put_back_file_by_file(
    board: Sysroot, controller: ModeController, put: Put, content_of: Content
) -> None:
    put(STATUS, "pmode:0099")
    put("/sys/devices/system/cpu/cpu5/online", "0")
    put(f"{GPU}/max_freq", "522750000")
    watched = ("/sys/devices/system/cpu/cpu5/online", f"{GPU}/max_freq", f"{POLICY0}/scaling_max_freq")
    before = [board.read(path) for path in watched]
    with controller.applied("MODE_15W"):
        assert [board.read(path) for path in watched] != before
    assert [board.read(path) for path in watched] == before


def test_a_journal_for_a_knob_that_is_gone_is_told(
    board: Sysroot, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_as_if_killed(board, state_dir, "MODE_15W", monkeypatch)
    with pytest.raises(PowerlabError, match="nvpmodel mode should be 0 and cannot be read"):
        ModeController(board, state_dir, knobs=(CpuFreq(),)).recover()
