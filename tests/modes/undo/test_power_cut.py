"""The power may fail at any moment: whatever of the journal reached the disk, the device finds its way back."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from modes.disk_model import Disk, Moment
from powerlab.modes.controller import ModeController
from powerlab.modes.undo.journal import Journal, place_of
from powerlab.sysroot import Sysroot

BOOT_ID = "/proc/sys/kernel/random/boot_id"
STATUS = "/var/lib/nvpmodel/status"
Content = Callable[[Sysroot], dict[str, str]]


@pytest.fixture
def disk(board: Sysroot, state_dir: Path) -> Disk:
    return Disk(place_of(board, state_dir))


def boot_anew(board: Sysroot) -> None:
    board.path(BOOT_ID).write_text(f"{uuid.uuid4()}\n")


def test_a_cut_at_any_moment_of_a_mode_leaves_the_mode_of_before(
    board: Sysroot, state_dir: Path, disk: Disk, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board keeps its mode over a boot, so the one that was there before has to come back at the next one."""
    before = content_of(board)
    taken: list[tuple[Moment, dict[str, str]]] = []
    note = Disk._next

    def noted(self: Disk, *args: object, **options: object) -> None:
        note(self, *args, **options)  # type: ignore[arg-type]
        taken.append((self.moments[-1], content_of(board)))

    monkeypatch.setattr(Disk, "_next", noted)
    with disk.watched(), ModeController(board, state_dir).applied("MODE_15W"):
        taken.append((disk.moments[-1], content_of(board)))
    assert [moment.before for moment, _ in taken] == [
        "create",
        "write",
        "force the file",
        "rename",
        "force the directory",
        "force the directory",
        "unlink",
        "force the directory",
    ]
    cuts = [(moment, files, status) for moment, status in taken for files in moment.after_a_power_cut()]
    assert len(cuts) > len(taken)
    for moment, files, at_the_cut in cuts:
        for path, text in at_the_cut.items():
            board.path(path).write_text(text) if not board.path(path).is_symlink() else None
        disk.put_back(files)
        boot_anew(board)
        ModeController(board, state_dir).recover()
        assert board.read(STATUS) == before[STATUS.lstrip("/")].strip(), f"after {moment.before}"
        assert ModeController(board, state_dir).recover() == ()


def test_nothing_is_set_before_the_journal_is_forced(
    board: Sysroot, state_dir: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_the_first_write: list[Moment] = []
    real = ModeController._change

    def change(self: ModeController, *args: object) -> None:
        at_the_first_write.append(disk.moments[-1])
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ModeController, "_change", change)
    with disk.watched(), ModeController(board, state_dir).applied("governor=powersave"):
        pass
    (moment,) = at_the_first_write
    states = list(moment.after_a_power_cut())
    assert all(list(files) == ["journal.json"] for files in states)
    (text,) = {files["journal.json"] for files in states}
    disk.put_back({"journal.json": text})
    entry = Journal(Path(disk.directory) / "journal.json").read()
    assert entry is not None
    assert entry.mode == "governor=powersave"


def test_no_moment_leaves_half_a_journal_under_its_name(board: Sysroot, state_dir: Path, disk: Disk) -> None:
    with disk.watched():
        controller = ModeController(board, state_dir)
        with controller.applied("governor=powersave"):
            pass
        controller.set("governor=powersave")
        controller.restore()
    seen = 0
    for moment in disk.moments:
        for files in moment.after_a_power_cut():
            for name in files.keys() & {"journal.json", "undo.json"}:
                disk.put_back(files)
                assert Journal(Path(disk.directory) / name).read() is not None, moment.before
                seen += 1
    assert seen > 10


def test_the_model_knows_a_disk_that_loses_what_was_not_forced(tmp_path: Path) -> None:
    """So that the tests above can fail: without the first fsync the name may come before the content."""
    disk = Disk(tmp_path)
    with disk.watched():
        handle = os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT)
        os.write(handle, b"text")
        os.close(handle)
        os.replace(tmp_path / "new", tmp_path / "name")
    states = list(disk.moments[-1].after_a_power_cut())
    assert states == [{}, {"name": b""}, {"name": b"te"}, {"name": b"text"}]
