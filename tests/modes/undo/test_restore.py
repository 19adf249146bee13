"""The way back across boots, users and versions of powerlab, and while somebody presses Ctrl-C again."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.controller import ModeController
from powerlab.modes.knobs.cpufreq import knob as cpufreq
from powerlab.modes.knobs.cpufreq.knob import CpuFreq
from powerlab.modes.undo.journal import Journal, place_of
from powerlab.modes.undo.signals import signals_deferred
from powerlab.sysroot import Sysroot

BOOT_ID = "/proc/sys/kernel/random/boot_id"
STATUS = "/var/lib/nvpmodel/status"
NVPMODEL = "/usr/sbin/nvpmodel"
POLICY0 = "/sys/devices/system/cpu/cpufreq/policy0"
Put = Callable[[str, str], None]
Content = Callable[[Sysroot], dict[str, str]]


@pytest.fixture
def journal(board: Sysroot, state_dir: Path) -> Journal:
    return Journal(place_of(board, state_dir) / "journal.json")


def leave_as_if_killed(board: Sysroot, state_dir: Path, mode: str) -> None:
    """Apply a mode and go away without putting anything back."""
    controller = ModeController(board, state_dir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(controller._back, "put_back", lambda entry: ())
        with controller.applied(mode):
            pass


def governor(board: Sysroot) -> str:
    return board.read(f"{POLICY0}/scaling_governor")


def test_what_is_set_to_stay_after_a_boot_is_taken_back_although_an_earlier_boot_set_something_too(
    board: Sysroot, state_dir: Path, put: Put
) -> None:
    before = governor(board)
    ModeController(board, state_dir).set("governor=performance")
    put(BOOT_ID, "second")
    put(f"{POLICY0}/scaling_governor", before)
    ModeController(board, state_dir).set("governor=powersave")
    assert ModeController(board, state_dir).restore() != ()
    assert governor(board) == before
    assert ModeController(board, state_dir).persistent() is None


def test_a_mode_that_outlives_the_boot_is_taken_back_although_it_was_the_second_that_was_set(
    board: Sysroot, state_dir: Path, put: Put
) -> None:
    ModeController(board, state_dir).set("governor=powersave")
    ModeController(board, state_dir).set("MODE_15W")
    put(BOOT_ID, "second")
    assert ModeController(board, state_dir).restore() == (Setting(knob="nvpmodel", target="mode", value="0"),)
    assert board.read(STATUS) == "pmode:0000"


def test_modes_set_to_stay_in_several_boots_are_all_taken_back(board: Sysroot, state_dir: Path, put: Put) -> None:
    before = governor(board)
    ModeController(board, state_dir).set("MODE_15W")
    put(BOOT_ID, "second")
    ModeController(board, state_dir).set("MODE_30W_2CORE")
    put(BOOT_ID, "third")
    ModeController(board, state_dir).set("governor=powersave")
    controller = ModeController(board, state_dir)
    assert controller.persistent() is not None
    controller.restore()
    assert (board.read(STATUS), governor(board)) == ("pmode:0000", before)
    assert controller.persistent() is None
    assert controller.restore() == ()


def test_a_mode_somebody_chose_between_two_boots_is_what_is_gone_back_to(
    board: Sysroot, state_dir: Path, put: Put
) -> None:
    ModeController(board, state_dir).set("MODE_15W")
    put(BOOT_ID, "second")
    put(STATUS, "pmode:0003")
    ModeController(board, state_dir).set("governor=powersave")
    ModeController(board, state_dir).restore()
    assert board.read(STATUS) == "pmode:0003"


@pytest.mark.parametrize("to_stay", [True, False])
def test_what_cannot_be_read_after_a_boot_is_not_forgotten(
    board: Sysroot, state_dir: Path, put: Put, to_stay: bool
) -> None:
    """At boot the program may not answer yet; what outlives a boot must still be put back later."""
    if to_stay:
        ModeController(board, state_dir).set("MODE_15W")
    else:
        leave_as_if_killed(board, state_dir, "MODE_15W")
    put(BOOT_ID, "second")
    board.path(NVPMODEL).rename(board.path(NVPMODEL + ".away"))
    with pytest.raises(PowerlabError, match=r"cannot be read.*stay on record.*modes restore.*remove .*\.json"):
        ModeController(board, state_dir).restore()
    board.path(NVPMODEL + ".away").rename(board.path(NVPMODEL))
    ModeController(board, state_dir).restore()
    assert board.read(STATUS) == "pmode:0000"


def test_a_knob_that_fails_keeps_nobody_from_forgetting_what_ended_with_the_boot(
    board: Sysroot, state_dir: Path, put: Put
) -> None:
    leave_as_if_killed(board, state_dir, "governor=powersave")
    put(BOOT_ID, "second")
    board.path(NVPMODEL).unlink()
    assert ModeController(board, state_dir).recover() == ()
    assert ModeController(board, state_dir).unrestored() is None


def test_no_room_to_remember_a_second_mode_sets_none(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    ModeController(board, state_dir).set("MODE_15W")
    kept = content_of(board)
    write = Journal.write

    def full(self: Journal, entry: object) -> None:
        if self.path.name == "undo.json":
            raise PowerlabError("no room.")
        write(self, entry)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", full)
        with pytest.raises(PowerlabError, match="no room"):
            ModeController(board, state_dir).set("governor=powersave")
    assert content_of(board) == kept
    ModeController(board, state_dir).restore()
    assert board.read(STATUS) == "pmode:0000"


def test_a_journal_of_the_first_release_is_undone_under_todays_names(
    board: Sysroot, state_dir: Path, journal: Journal, content_of: Content
) -> None:
    before = content_of(board)
    leave_as_if_killed(board, state_dir, "cpu-max=1190400kHz")
    entry = journal.read()
    assert entry is not None
    journal.write(replace(entry, previous=_as_ranges(entry.previous), target=_as_ranges(entry.previous)))
    assert b"range_khz" in journal.path.read_bytes()
    ModeController(board, state_dir).recover()
    assert content_of(board) == before


def _as_ranges(settings: Sequence[Setting]) -> tuple[Setting, ...]:
    """The limits of a clock as they were recorded once: one setting, ``low-high``."""
    values = {setting.target: setting.value for setting in settings if setting.knob == CpuFreq.name}
    kept = [setting for setting in settings if not setting.target.endswith(("max_khz", "min_khz"))]
    policies = sorted({target.partition(".")[0] for target in values})
    ranges = [
        Setting(
            knob=CpuFreq.name,
            target=f"{policy}.range_khz",
            value=f"{values[f'{policy}.min_khz']}-{values[f'{policy}.max_khz']}",
        )
        for policy in policies
    ]
    return (*kept, *ranges)


def test_a_newer_versions_journal_is_neither_damage_nor_undone(
    board: Sysroot, state_dir: Path, journal: Journal, content_of: Content
) -> None:
    leave_as_if_killed(board, state_dir, "governor=powersave")
    outer = json.loads(journal.path.read_bytes())
    journal.path.write_text(json.dumps({**outer, "version": 2}))
    left = content_of(board)
    for _ in range(2):
        with pytest.raises(PowerlabError, match="by a newer powerlab; run `powerlab modes restore` with that version"):
            ModeController(board, state_dir).recover()
    assert content_of(board) == left


def test_what_another_users_killed_process_left_is_not_taken_for_the_devices_own(
    board: Sysroot, state_dir: Path, tmp_path: Path, content_of: Content
) -> None:
    before = content_of(board)
    leave_as_if_killed(board, state_dir, "governor=powersave")
    for _ in range(2):
        with pytest.raises(PowerlabError, match=r"killed left a power mode set.*modes restore` as the user"):
            ModeController(board, tmp_path / "somebody").set("MODE_15W")
    ModeController(board, state_dir).recover()
    assert content_of(board) == before
    with ModeController(board, tmp_path / "somebody").applied("MODE_15W"):
        pass
    assert content_of(board) == before


def test_another_users_journal_that_nobody_may_look_for_counts_as_there(
    board: Sysroot, state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_as_if_killed(board, state_dir, "governor=powersave")
    real_stat = os.stat

    def closed(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("journal.json"):
            raise PermissionError
        return real_stat(path, **options)

    monkeypatch.setattr(os, "stat", closed)
    with pytest.raises(PowerlabError, match="killed left a power mode set"):
        ModeController(board, tmp_path / "somebody").restore()


def test_a_journal_that_was_removed_by_hand_is_in_nobodys_way(board: Sysroot, state_dir: Path, tmp_path: Path) -> None:
    leave_as_if_killed(board, state_dir, "governor=powersave")
    Journal(place_of(board, state_dir) / "journal.json").remove()
    with ModeController(board, tmp_path / "somebody").applied("MODE_15W"):
        pass


def test_a_second_ctrl_c_does_not_cut_the_way_back_short(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(board)
    controller = ModeController(board, state_dir)
    restore = controller._board.restore

    def pressed_again(previous: Sequence[Setting], touched: frozenset[tuple[str, str]]) -> tuple[Setting, ...]:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return restore(previous, touched)

    monkeypatch.setattr(controller._board, "restore", pressed_again)
    with pytest.raises(KeyboardInterrupt), controller.applied("MODE_15W"):
        signal.raise_signal(signal.SIGINT)
    assert content_of(board) == before
    assert controller.unrestored() is None


def test_a_signal_that_came_meanwhile_is_delivered_at_the_end() -> None:
    done = []

    def work() -> None:
        with signals_deferred():
            signal.raise_signal(signal.SIGINT)
            done.append("all")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_ignored_signal_stays_ignored_and_other_threads_hold_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_deferred():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    seen = []

    def elsewhere() -> None:
        with signals_deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_what_root_changed_while_a_user_had_a_quota_is_not_the_user_s_to_put_back(
    board: Sysroot, state_dir: Path, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpufreq, "can_write", lambda sysroot, path: False)
    controller = ModeController(board, state_dir)
    with controller.applied("cpu-quota=2"):
        put(f"{POLICY0}/scaling_governor", "performance")
        assert "policy0.governor" in str(controller.drifted("cpu-quota=2"))
    assert governor(board) == "performance"
    assert controller.unrestored() is None
