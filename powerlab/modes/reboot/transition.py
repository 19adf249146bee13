"""Take a device through a reboot into a power mode that needs one; the caller stores the previous mode."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.modes.base import Knob
from powerlab.modes.knobs.nvpmodel.program import reboot_into
from powerlab.modes.registry import KNOBS
from powerlab.modes.settings import Board, key_of
from powerlab.modes.undo.journal import boot_id, place_of
from powerlab.modes.undo.lock import device_lock
from powerlab.sysroot import Sysroot


class Rebooting:
    """The reboots of one device. Nothing here is remembered: the process does not live to see what comes of it."""

    def __init__(self, sysroot: Sysroot, state_dir: Path, knobs: Sequence[Knob] = KNOBS) -> None:
        """Prepare; nothing is read yet. The arguments are those of the device's ModeController."""
        self._sysroot, self._state_dir, self._knobs = sysroot, state_dir, tuple(knobs)
        self._board = Board(sysroot, knobs)

    def boot_id(self) -> str:
        """Return the id of the running boot; empty where the kernel tells none."""
        return boot_id(self._sysroot)

    def settings(self) -> tuple[Setting, ...]:
        """Return every setting that this process could put back."""
        return self._board.read_ours()

    def now(self, target: Setting) -> Setting | None:
        """Return what the device is kept in where ``target`` would be kept; None where that is in no table."""
        return next((one for one in self._board.read() if key_of(one) == key_of(target)), None)

    def missing(self, target: Setting) -> str | None:
        """Return in words why a setting is not in force, None where it is: kept, and taken by the last boot."""
        if difference := self._board.difference([target]):
            return difference
        mode = self.mode_of(target)
        if mode is None:
            return f"no power mode of the device has {target.knob} {target.target} {target.value}"
        return f"{mode.name} is kept for the next boot and not in force" if mode.requires_reboot else None

    def mode_of(self, target: Setting) -> PowerMode | None:
        """Return the power mode that a setting alone makes."""
        modes = (mode for knob in self._knobs if knob.name == target.knob for mode in knob.modes(self._sysroot))
        return next((mode for mode in modes if mode.settings == (target,)), None)

    def ask(self, target: Setting) -> str:
        """Have a setting kept and the device rebooted, if it takes that; return what the device said.

        Raises:
            PowerlabError: somebody else is setting modes, or the device cannot be asked.
        """
        with self._locked():
            return reboot_into(self._sysroot, int(target.value))

    def put_back(self, previous: Sequence[Setting]) -> tuple[Setting, ...]:
        """Write what a reboot made the kernel forget; return what was written.

        Raises:
            PowerlabError: somebody else is setting modes, or the device refuses a setting.
        """
        with self._locked():
            return self._board.restore(previous, frozenset())

    def _locked(self) -> AbstractContextManager[None]:
        return device_lock(self._sysroot, self._state_dir, place_of(self._sysroot, self._state_dir) / "journal.json")


def check_can_go(rebooting: Rebooting, target: Setting) -> Setting:
    """Return the setting to come back to from ``target``.

    Raises:
        PowerlabError: there is none, or the kernel does not tell one boot from the next.
    """
    original = rebooting.now(target)
    if original is None:
        raise PowerlabError(
            "the device is in no power mode of its own table, so there is none to come back to; set one of them first."
        )
    if not rebooting.boot_id():
        raise PowerlabError("the kernel gives no boot id, so powerlab cannot tell whether the device has rebooted.")
    return original
