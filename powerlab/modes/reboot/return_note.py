"""Note of the mode to return to after a reboot, stored beside the journals.

The agent that had it rebooted remembers the whole step in its spool, and goes home by itself. Who stands before the
device knows nothing of that spool, and this says where home is. Unlike a journal it is no order to undo at once: the
sweep may go on in that mode, and the way takes a reboot, which nobody but an agent that may is to ask for.
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
        self._note = Journal(place_of(sysroot, state_dir) / "home.json")
        self._device = Rebooting(sysroot, state_dir, knobs)

    def keep(self, home: Setting, previous: Sequence[Setting], target: Setting) -> None:
        """Note where home is, before the device is asked to reboot into ``target``.

        Args:
            home: the setting to come back to by a reboot.
            previous: all settings before the first reboot, in the order in which to write them back.
            target: where the device goes.

        Raises:
            PowerlabError: that cannot be written.
        """
        others = tuple(setting for setting in previous if key_of(setting) != key_of(home))
        boot_id, name = self._device.boot_id(), self._name(target)
        self._note.write(Entry(mode=name, boot_id=boot_id, pid=os.getpid(), previous=(home, *others), target=(target,)))

    def pending(self) -> Entry | None:
        """Return where the device was rebooted to, ``previous`` beginning with its home; None where it was not.

        Raises:
            PowerlabError: the note cannot be read, or is damaged and was set aside.
        """
        return self._note.read()

    def words(self) -> str:
        """Return a sentence on a device that is not home, or whose other settings are not; nothing where all is well.

        Raises:
            PowerlabError: as :meth:`pending` does.
        """
        entry = self.pending()
        if entry is None:
            return ""
        home = entry.previous[0]
        if self._device.missing(home) is None:
            return (
                f"the device was rebooted for a sweep and is back in {self._name(home)}, but its other settings may not"
                " be; `powerlab modes restore` puts them back."
            )
        return (
            f"the device was rebooted into {entry.mode} for a sweep and is not back in {self._name(home)}; its agent"
            f" takes it back when that sweep is over, or do it by hand: `sudo nvpmodel -m {home.value}`, reboot, and"
            " run `powerlab modes restore`."
        )

    def restore(self) -> tuple[Setting, ...]:
        """Put back what a reboot made the kernel forget, once the device is home; return what was written.

        Raises:
            PowerlabError: it is not home, which takes a reboot; or as :meth:`pending` does; or somebody else is setting
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
        """Remove the note of a device that is home.

        Raises:
            PowerlabError: it cannot be removed.
        """
        if self._note.path.exists():
            self._note.remove()

    def _name(self, setting: Setting) -> str:
        mode = self._device.mode_of(setting)
        return f"{setting.knob} {setting.target} {setting.value}" if mode is None else mode.name
