"""A disk without room: no mode is set that could not be undone, and the sentence says what to do."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.modes.undo.journal import Journal, place_of
from powerlab.sysroot import Sysroot

Content = Callable[[Sysroot], dict[str, str]]


def refusing(number: int) -> Callable[..., int]:
    def refuse(*args: object, **options: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """A real limit of the kernel: a write beyond it fails, one across it is cut short."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def check_untouched(board: Sysroot, state_dir: Path, before: dict[str, str], content_of: Content) -> None:
    controller = ModeController(board, state_dir)
    assert content_of(board) == before
    assert controller.unrestored() is None
    assert controller.recover() == ()


def test_a_device_that_is_full_keeps_no_journal_and_sets_no_mode(
    board: Sysroot, state_dir: Path, content_of: Content
) -> None:
    """``/dev/full`` is the kernel's own full disk: it takes no byte."""
    before = content_of(board)
    place = place_of(board, state_dir)
    place.mkdir(parents=True)
    (place / "journal.tmp").symlink_to("/dev/full")
    with pytest.raises(PowerlabError, match=r"No space left on device.*make room there"):
        ModeController(board, state_dir).set("governor=powersave")
    assert list(place.iterdir()) == [], "what there was no room for is not left behind"
    check_untouched(board, state_dir, before, content_of)


@pytest.mark.parametrize("room", [0, 1, 1000])
def test_room_for_a_part_of_the_journal_is_no_room(
    board: Sysroot, state_dir: Path, content_of: Content, room: int
) -> None:
    before = content_of(board)
    journal = Journal(place_of(board, state_dir) / "journal.json")
    controller = ModeController(board, state_dir)
    with controller.applied("governor=powersave"):
        entry = journal.read()
    assert entry is not None
    with largest_file(room), pytest.raises(PowerlabError, match="no mode is set"):
        journal.write(entry)
    assert list((place_of(board, state_dir)).iterdir()) == []
    check_untouched(board, state_dir, before, content_of)


@pytest.mark.parametrize("fails", [("fsync", errno.EIO), ("replace", errno.ENOSPC), ("write", errno.EDQUOT)])
def test_whichever_step_of_the_journal_fails_no_mode_is_set(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch, fails: tuple[str, int]
) -> None:
    before = content_of(board)
    with monkeypatch.context() as patch:
        call, number = fails
        patch.setattr(os, call, refusing(number))
        with pytest.raises(PowerlabError, match="no mode is set"):
            ModeController(board, state_dir).set("governor=powersave")
    check_untouched(board, state_dir, before, content_of)


def test_a_journal_that_cannot_be_removed_is_told_and_the_device_is_as_it_was(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(board)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refusing(errno.EROFS))
        controller = ModeController(board, state_dir)
        with pytest.raises(PowerlabError, match="cannot be removed"), controller.applied("governor=powersave"):
            pass
    assert content_of(board) == before
    assert ModeController(board, state_dir).unrestored() is not None
    ModeController(board, state_dir).recover()
    check_untouched(board, state_dir, before, content_of)


def test_a_mode_that_cannot_be_noted_as_set_to_stay_is_told(
    board: Sysroot, state_dir: Path, content_of: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content_of(board)
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        if Path(target).name == "undo.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        with pytest.raises(PowerlabError, match="cannot be renamed"):
            ModeController(board, state_dir).set("governor=powersave")
    ModeController(board, state_dir).recover()
    check_untouched(board, state_dir, before, content_of)
