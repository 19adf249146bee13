"""Sets power modes so that the device always gets its previous settings back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.modes.base import Knob, KnobProbe
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot


class ModeController:
    """Sets power modes on one device, one at a time."""

    def __init__(self, sysroot: Sysroot, state_dir: Path, knobs: Sequence[Knob] = KNOBS) -> None:
        self._sysroot = sysroot
        self._state_dir = state_dir
        self._knobs = tuple(knobs)

    def probes(self) -> tuple[KnobProbe, ...]:
        """Return what each knob found, the absent ones too."""
        return tuple(knob.probe(self._sysroot) for knob in self._knobs)

    def modes(self) -> tuple[PowerMode, ...]:
        """Return the power modes that can be asked for; ``current`` always comes first."""
        return (CURRENT_MODE,)

    def mode(self, name: str) -> PowerMode:
        """Return the mode of that name; raises PowerlabError naming the modes there are."""
        for mode in self.modes():
            if mode.name == name:
                return mode
        raise PowerlabError(f"this device has no power mode {name!r}; `powerlab modes` lists the modes it has.")

    @contextmanager
    def applied(self, mode_name: str) -> Iterator[PowerMode]:
        """Set a mode, yield it, and put the previous settings back at the end.

        Raises:
            PowerlabError: the mode is unknown, needs a reboot, is refused by the device or does not read back, or
                another process is setting modes on this device; the previous settings are back by then.
        """
        yield self.mode(mode_name)

    def recover(self) -> tuple[Setting, ...]:
        """Undo what a killed process left; return the settings written, none where there was nothing to undo."""
        return ()

    def drifted(self, mode_name: str) -> str | None:
        """Return one sentence when somebody changed the applied mode meanwhile, None when all is as it was set."""
        self.mode(mode_name)
        return None
