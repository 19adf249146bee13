"""Restore settings from journals; keep what permanent modes replaced.

Beside the journal of the change in progress two more may lie. ``undo.json`` holds the settings before the first mode
that was set to stay in this boot. ``earlier.json`` holds, of those set in earlier boots, what has outlived them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.settings import Board, Key, key_of
from powerlab.modes.undo.journal import Entry, Journal, boot_id
from powerlab.modes.undo.lock import note_change
from powerlab.modes.undo.signals import signals_deferred
from powerlab.sysroot import Sysroot


class Restorer:
    """The journals of one device and what is done with them. Who calls holds the device's lock."""

    def __init__(self, sysroot: Sysroot, board: Board, place: Path, journal: Journal) -> None:
        """Prepare; nothing is read or written yet.

        Args:
            sysroot: the device.
            board: its knobs.
            place: the directory of its journals.
            journal: the one of a change in progress.
        """
        self._sysroot = sysroot
        self._board = board
        self._journal = journal
        self._undo = Journal(place / "undo.json")
        self._earlier = Journal(place / "earlier.json")

    def persistent(self) -> Entry | None:
        """Return the oldest change that was made to stay.

        Raises:
            PowerlabError: a journal is damaged.
        """
        return self._earlier.read() or self._undo.read()

    def begin(self, entry: Entry) -> None:
        """Record a change that is about to be made.

        Raises:
            PowerlabError: it cannot be written; then nothing may be changed.
        """
        note_change(self._sysroot, self._journal.path)
        self._journal.write(entry)

    def put_back(self, entry: Entry) -> tuple[Setting, ...]:
        """Put back what was before the change in progress, and forget it; return what was written.

        Raises:
            PowerlabError: the device refuses a setting; the journal stays.
        """
        with signals_deferred():
            written = self._restore(self._journal, entry)
            note_change(self._sysroot, None)
        return written

    def take_back(self, *, also_to_stay: bool) -> tuple[Setting, ...]:
        """Undo what a killed process left, and perhaps all that was set to stay; return what was written.

        Raises:
            PowerlabError: the device refuses a setting, or a journal is damaged.
        """
        journals = (self._journal, self._undo, self._earlier) if also_to_stay else (self._journal,)
        written: tuple[Setting, ...] = ()
        with signals_deferred():
            for journal in journals:
                entry = journal.read()
                written += () if entry is None else self._restore(journal, entry)
            note_change(self._sysroot, None)
        return written

    def keep(self, entry: Entry) -> None:
        """Let the change in progress stay: remember it among those that :meth:`take_back` undoes.

        Raises:
            PowerlabError: that cannot be written.
        """
        undo = self._undo.read()
        if undo is None:
            self._journal.move_to(self._undo)
        else:
            self._undo.write(replace(undo, target=_together(undo.target, entry.target)))
            self._journal.remove()
        note_change(self._sysroot, None)

    def put_aside_earlier_boots(self) -> None:
        """Put what was set to stay before the last boot in a journal of its own, as far as it has outlived that.

        What the kernel has forgotten is no longer to be undone, and what is set from now on has to be.

        Raises:
            PowerlabError: a journal is damaged or cannot be written, or what outlives a boot cannot be read.
        """
        undo = self._undo.read()
        if undo is None or undo.boot_id == boot_id(self._sysroot):
            return
        earlier = self._earlier.read()
        first = {key_of(setting): setting for setting in undo.previous}
        first |= {key_of(setting): setting for setting in (earlier.previous if earlier else ())}
        target = _together(earlier.target if earlier else (), undo.target)
        lost = self._outlived(tuple(first.values()), target)
        if lost:
            self._earlier.write(replace(undo, previous=lost, target=target))
        else:
            self._earlier.remove()
        self._undo.remove()

    def _restore(self, journal: Journal, entry: Entry) -> tuple[Setting, ...]:
        try:
            if entry.boot_id == boot_id(self._sysroot):
                written = self._board.restore(entry.previous, _keys(entry.target))
            else:
                lost = self._outlived(entry.previous, entry.target)
                written = self._board.restore(lost, frozenset())
        except PowerlabError as error:
            raise PowerlabError(
                f"{str(error).removesuffix('.')}. The settings from before {entry.mode} stay on record: fix that and "
                "run"
                f" `powerlab modes restore`, or set the device by hand and remove {journal.path}."
            ) from None
        journal.remove()
        return written

    def _outlived(self, previous: Iterable[Setting], target: Iterable[Setting]) -> tuple[Setting, ...]:
        """Return what to put back after a reboot: what outlives one and is still as it was set.

        Raises:
            PowerlabError: one cannot be read, so nobody can tell.
        """
        ours = set(target)
        concerned = [setting for setting in self._board.survivors(previous) if key_of(setting) in _keys(ours)]
        now = self._board.read_surely(concerned)
        return tuple(setting for setting in concerned if now[key_of(setting)] in ours)


def _keys(settings: Iterable[Setting]) -> frozenset[Key]:
    return frozenset(key_of(setting) for setting in settings)


def _together(one: Iterable[Setting], other: Iterable[Setting]) -> tuple[Setting, ...]:
    """Return both; a setting that was made to two values stands there with both."""
    return tuple(dict.fromkeys((*one, *other)))
