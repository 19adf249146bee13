"""Set power modes so that the previous settings are always restored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting, reboot_command
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob, KnobProbe
from powerlab.modes.io import thermal_caps
from powerlab.modes.naming import JOINT, find_mode, listed_own_modes, why_not
from powerlab.modes.registry import KNOBS
from powerlab.modes.settings import Board
from powerlab.modes.undo.journal import Entry, Journal, boot_id, place_of
from powerlab.modes.undo.lock import device_lock
from powerlab.modes.undo.restore import Restorer
from powerlab.sysroot import Sysroot


class ModeController:
    """Sets power modes on one device, one at a time.

    The way of every change: take the device's lock; undo what a killed process left; record all settings in the
    journal and force it to disk; write the mode; read it back; at the end write the recorded settings and read those
    back; remove the journal. A process may be killed between any two of these steps: :meth:`recover` of the next one
    finishes the way back.
    """

    def __init__(self, sysroot: Sysroot, state_dir: Path, knobs: Sequence[Knob] = KNOBS) -> None:
        """Prepare for the device behind a sysroot; nothing is read or written yet.

        Args:
            sysroot: the device.
            state_dir: where the journal lies; it must be the same one each time on a device.
            knobs: what can be turned.
        """
        self._sysroot = sysroot
        self._state_dir = state_dir
        self._knobs = tuple(knobs)
        self._board = Board(sysroot, knobs)
        place = place_of(sysroot, state_dir)
        self._journal = Journal(place / "journal.json")
        self._back = Restorer(sysroot, self._board, place, self._journal)
        self._expected: dict[str, tuple[Setting, ...]] = {}

    def probes(self) -> tuple[KnobProbe, ...]:
        """Return what each knob found, the absent ones too."""
        return tuple(knob.probe(self._sysroot) for knob in self._knobs)

    def modes(self) -> tuple[PowerMode, ...]:
        """Return the power modes this device offers; ``current`` always comes first, the owner's own come last.

        A knob that is absent, may not be turned or is broken offers none; :meth:`probes` says why. More modes can be
        asked for by name than are listed here: :meth:`mode`. What the owner named and cannot be set here is left out;
        :meth:`own_problems` says why.
        """
        offered = [CURRENT_MODE]
        for knob in self._knobs:
            if knob.probe(self._sysroot).availability is Availability.AVAILABLE:
                names = {mode.name for mode in offered}
                offered += [mode for mode in knob.modes(self._sysroot) if mode.name not in names]
        return (*offered, *listed_own_modes(self._sysroot, self._knobs)[0])

    def own_problems(self) -> tuple[str, ...]:
        """Return a sentence for each mode of the owner's that cannot be used, or for a file that cannot be read."""
        return listed_own_modes(self._sysroot, self._knobs)[1]

    def mode(self, name: str) -> PowerMode:
        """Return the mode of that name: one that is offered, any value a knob takes, or parts joined with ``+``.

        Raises:
            PowerlabError: the device has none, or may not set it; the error says why, or names those it offers.
        """
        if mode := self.find(name):
            return mode
        if reason := why_not(self._sysroot, self._knobs, name):
            raise PowerlabError(reason)
        names = [mode.name for mode in self.modes()]
        wrong = next((part for part in name.split(JOINT) if self.find(part) is None), name)
        where = f"{name!r}: " if wrong != name else ""
        raise PowerlabError(
            f"{where}this device has no power mode {wrong!r}{meant(wrong, names)}; choose one of: {', '.join(names)}."
        )

    def find(self, name: str) -> PowerMode | None:
        """Return the mode of that name as :meth:`mode` does, None where the device has none.

        Raises:
            PowerlabError: the name is a knob's, and impossible on this device.
        """
        return find_mode(self._sysroot, self._knobs, name)

    def reboot_target(self, name: str) -> Setting | None:
        """Return the setting of a mode that only takes effect at the next boot, None where all can be set now.

        Raises:
            PowerlabError: as :meth:`mode` does.
        """
        mode = self.mode(name)
        return next(iter(self._board.survivors(mode.settings)), None) if mode.requires_reboot else None

    @contextmanager
    def applied(self, mode_name: str) -> Iterator[PowerMode]:
        """Set a mode, yield it, and put the previous settings back at the end.

        ``current`` takes no lock and writes nothing.

        Raises:
            PowerlabError: the mode is unknown, needs a reboot, is refused by the device or does not read back, or
                another process is setting modes on this device; the previous settings are back by then.
        """
        if mode_name == CURRENT_MODE.name:
            self._expected[mode_name] = self._board.read()
            try:
                yield CURRENT_MODE
            finally:
                del self._expected[mode_name]
            return
        with self._locked():
            self._back.take_back(also_to_stay=False)
            mode = self._settable(mode_name)
            entry = self._begin(mode)
            try:
                self._change(mode, entry)
                yield mode
            finally:
                self._expected.pop(mode_name, None)
                self._back.put_back(entry)

    def set(self, mode_name: str) -> PowerMode:
        """Set a mode to stay; :meth:`restore` goes back to what was before the first mode set so.

        Raises:
            PowerlabError: as :meth:`applied` does.
        """
        if mode_name == CURRENT_MODE.name:
            raise PowerlabError("the mode `current` changes nothing, so there is nothing to set.")
        with self._locked():
            self._back.take_back(also_to_stay=False)
            mode = self._settable(mode_name)
            self._back.put_aside_earlier_boots()
            entry = self._begin(mode)
            try:
                self._change(mode, entry)
                self._back.keep(entry)
            except BaseException:
                self._back.put_back(entry)
                raise
            return mode

    def recover(self) -> tuple[Setting, ...]:
        """Undo what a killed process left; return the settings written, none where there was nothing to undo.

        Within the same boot every recorded setting is put back. After a reboot the kernel has forgotten most of them;
        only settings that outlive a reboot are put back, and only while they still are what the killed process set:
        whatever was chosen since stays.

        Raises:
            PowerlabError: another process is setting modes, the journal is damaged, or the device refuses a setting;
                in the last case the journal stays, and the next call tries again.
        """
        if self._journal.read() is None:
            return ()
        with self._locked():
            return self._back.take_back(also_to_stay=False)

    def restore(self) -> tuple[Setting, ...]:
        """Undo what a killed process left and every mode set to stay; return the settings written.

        Raises:
            PowerlabError: as :meth:`recover` does.
        """
        with self._locked():
            return self._back.take_back(also_to_stay=True)

    def unrestored(self) -> Entry | None:
        """Return the change of a process that was killed, or is still at it; None where there is none.

        Raises:
            PowerlabError: the journal is damaged.
        """
        return self._journal.read()

    def persistent(self) -> Entry | None:
        """Return the first of the changes made with :meth:`set` that :meth:`restore` would undo.

        Raises:
            PowerlabError: the journal is damaged.
        """
        return self._back.persistent()

    def drifted(self, mode_name: str) -> str | None:
        """Return one sentence when somebody changed the applied mode meanwhile, None when all is as it was set.

        Raises:
            PowerlabError: the mode is not applied now, or a knob cannot be read.
        """
        if mode_name not in self._expected:
            raise PowerlabError(f"{mode_name} is not applied now, so it cannot have drifted; ask inside applied().")
        difference = self._board.difference(self._expected[mode_name])
        return None if difference is None else f"somebody changed {mode_name} meanwhile: {difference}."

    def _settable(self, name: str) -> PowerMode:
        mode = self.mode(name)
        if mode.requires_reboot:
            raise PowerlabError(
                f"{name} only takes effect after a reboot, which only an agent does that was started with"
                f" `--allow-reboot`; set it yourself with `{reboot_command(mode)}`, reboot, and sweep the mode"
                " `current`."
            )
        return mode

    def _begin(self, mode: PowerMode) -> Entry:
        if (
            thermal_caps.holds(self._sysroot) and not self._sysroot.simulated
        ):  # a simulated board's limits do not hide it
            raise PowerlabError(
                f"{mode.name} is not set now: heat holds the clocks of this device down and hides what their limits are"
                " set to, so they could not be put back; let it cool down or give it more air, and try again."
            )
        entry = Entry(
            mode=mode.name,
            boot_id=boot_id(self._sysroot),
            pid=os.getpid(),
            previous=self._board.read_ours(),
            target=mode.settings,
        )
        self._back.begin(entry)
        return entry

    def _locked(self) -> AbstractContextManager[None]:
        return device_lock(self._sysroot, self._state_dir, self._journal.path)

    def _change(self, mode: PowerMode, entry: Entry) -> None:
        """Make a mode's settings, knob after knob.

        Before each knob the name is looked up anew: what an earlier one did may leave other clocks to choose from
        (``MAXN+cpu-max=...`` on a board that was in a smaller mode).
        """
        written: tuple[Setting, ...] = ()
        for knob_name in dict.fromkeys(setting.knob for setting in mode.settings):
            now = self.mode(mode.name) if written else mode
            own = [setting for setting in now.settings if setting.knob == knob_name]
            if written and (new := self._board.unrecorded(own, entry.previous)):
                raise PowerlabError(
                    f"{mode.name} brings cores online and then sets {new.target}, of which powerlab has not recorded"
                    " what it was; set the part that brings them online first, to stay: `powerlab modes set`."
                )
            written += self._board.write_present(own, entry.previous)
        self._board.check(written, mode.name)
        self._expected[mode.name] = self._board.read()
