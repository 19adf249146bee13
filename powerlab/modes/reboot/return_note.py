"""Note of the mode to return to after a reboot, stored beside the journals.

The agent that had the device rebooted keeps the whole step in its spool, and goes back by itself. Other programs cannot
read that spool; this note tells them the original mode. Unlike a journal it is not undone at once: the sweep may go on
in that mode, and going back takes a reboot, which only an agent with ``--allow-reboot`` may request.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.modes.base import Knob
from powerlab.modes.reboot.transition import Rebooting
from powerlab.modes.registry import KNOBS
from powerlab.modes.settings import key_of
from powerlab.modes.undo.journal import Entry, Journal, place_of
from powerlab.sysroot import Sysroot


class ReturnNote:
    """The note of one device; the arguments are those of its ModeController."""

    def __init__(self, sysroot: Sysroot, state_dir: Path, knobs: Sequence[Knob] = KNOBS) -> None:
        self._note = Journal(place_of(sysroot, state_dir) / "original-mode.json")
        self._device = Rebooting(sysroot, state_dir, knobs)

    def keep(self, original: Setting, previous: Sequence[Setting], target: Setting) -> None:
        """Note the original mode before the device is asked to reboot into ``target``.

        Args:
            original: the setting to come back to by a reboot.
            previous: all settings before the first reboot, in the order in which to write them back.
            target: where the device goes.

        Raises:
            PowerlabError: that cannot be written.
        """
        others = tuple(setting for setting in previous if key_of(setting) != key_of(original))
        boot_id, name = self._device.boot_id(), self._name(target)
        self._note.write(
            Entry(mode=name, boot_id=boot_id, pid=os.getpid(), previous=(original, *others), target=(target,))
        )

    def pending(self) -> Entry | None:
        """Return where the device was rebooted to, ``previous`` beginning with its original mode, or None.

        Raises:
            PowerlabError: the note cannot be read, or is damaged and was set aside.
        """
        return self._note.read()

    def words(self) -> str:
        """Return a sentence on a device that is not back, or whose other settings are not; nothing where all is well.

        Raises:
            PowerlabError: as :meth:`pending` does.
        """
        entry = self.pending()
        if entry is None:
            return ""
        original = entry.previous[0]
        if self._device.missing(original) is None:
            return (
                f"the device was rebooted for a sweep and is back in {self._name(original)}, but its other settings may"
                " not be; `powerlab modes restore` puts them back."
            )
        return (
            f"the device was rebooted into {entry.mode} for a sweep and is not back in {self._name(original)}; its"
            " agent takes it back when that sweep is over, or do it by hand:"
            f" `sudo nvpmodel -m {original.value}`, reboot, and run `powerlab modes restore`."
        )

    def restore(self) -> tuple[Setting, ...]:
        """Put back what a reboot made the kernel forget, once the device is back; return what was written.

        Raises:
            PowerlabError: it is not back, which takes a reboot; or as :meth:`pending` does; or somebody else is setting
                modes, or the device refuses a setting. The note stays.
        """
        entry = self.pending()
        if entry is None:
            return ()
        if self._device.missing(entry.previous[0]):
            raise PowerlabError(self.words())
        written = self._device.put_back(entry.previous)
        self.forget()
        return written

    def forget(self) -> None:
        """Remove the note of a device that is back.

        Raises:
            PowerlabError: it cannot be removed.
        """
        if self._note.path.exists():
            self._note.remove()

    def _name(self, setting: Setting) -> str:
        mode = self._device.mode_of(setting)
        return f"{setting.knob} {setting.target} {setting.value}" if mode is None else mode.name
