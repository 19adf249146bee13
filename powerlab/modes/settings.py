"""Read, write and compare the settings of all knobs together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob
from powerlab.modes.io import thermal_caps
from powerlab.sysroot import Sysroot

Key = tuple[str, str]
_SHOWS_WHAT_RUNS = ".setspeed_khz"
"""Of this the kernel shows the clock it found, which hardware and limits round: another one is nobody's change."""


def key_of(setting: Setting) -> Key:
    """Return what a setting sets: knob and target."""
    return setting.knob, setting.target


class Board:
    """Every knob of one device."""

    def __init__(self, sysroot: Sysroot, knobs: Sequence[Knob]) -> None:
        self._sysroot = sysroot
        self._knobs = {knob.name: knob for knob in knobs}

    def read(self) -> tuple[Setting, ...]:
        """Return every setting as it is now, in the order in which to write them back.

        A knob that is absent or broken has none. Its modes are not offered either, so nothing of it needs to be put
        back; and a setting that was recorded and has vanished is told by :meth:`difference`.
        """
        return tuple(setting for knob in self._knobs.values() for setting in self._read_knob(knob))

    def read_ours(self) -> tuple[Setting, ...]:
        """Return as :meth:`read` does what this process may also set.

        What it may not, others change meanwhile, and it could not be put back: a user with a quota of processor time
        would wait for ever for a governor that root has chosen since.
        """
        return tuple(
            setting
            for knob in self._knobs.values()
            if knob.probe(self._sysroot).availability is not Availability.DENIED
            for setting in self._read_knob(knob)
        )

    def _read_knob(self, knob: Knob) -> Sequence[Setting]:
        try:
            return knob.read(self._sysroot)
        except PowerlabError:
            return ()

    def read_surely(self, settings: Iterable[Setting]) -> dict[Key, Setting]:
        """Return these settings as they are now.

        Raises:
            PowerlabError: one cannot be read.
        """
        wanted = list(settings)
        now: dict[Key, Setting] = {}
        for name in dict.fromkeys(setting.knob for setting in wanted):
            now |= {key_of(setting): setting for setting in self._knobs[name].read(self._sysroot)}
        if unread := next((setting for setting in wanted if key_of(setting) not in now), None):
            raise PowerlabError(
                f"{unread.knob} {unread.target} cannot be read, so powerlab cannot tell what it is now."
            )
        return now

    def write_present(self, settings: Sequence[Setting], previous: Iterable[Setting]) -> tuple[Setting, ...]:
        """Write settings in order and return those that were written.

        One that was there before and has gone meanwhile is left out: a cluster whose cores an earlier setting took off
        line has no clock to set.

        Raises:
            PowerlabError: the device refuses one; the rest is not written.
        """
        before = {key_of(setting) for setting in previous}
        written: list[Setting] = []
        for name in dict.fromkeys(setting.knob for setting in settings):
            own = [setting for setting in settings if setting.knob == name]
            gone = before - {key_of(setting) for setting in self._read_knob(self._knob(own[0]))}
            present = [setting for setting in own if key_of(setting) not in gone]
            self.write(present)
            written += present
        return tuple(written)

    def unrecorded(self, settings: Iterable[Setting], previous: Iterable[Setting]) -> Setting | None:
        """Return the first setting that can be read now and could not when the previous ones were recorded."""
        appeared = {key_of(setting) for setting in self.read()} - {key_of(setting) for setting in previous}
        return next((setting for setting in settings if key_of(setting) in appeared), None)

    def write(self, settings: Iterable[Setting]) -> None:
        """Write settings in order.

        Raises:
            PowerlabError: the device refuses one; the rest is not written.
        """
        for setting in settings:
            self._knob(setting).write(self._sysroot, setting)

    def check(self, wanted: Iterable[Setting], purpose: str) -> None:
        """Read back; ``purpose`` says in an error what the settings were for.

        Raises:
            PowerlabError: a setting reads back other than it was written.
        """
        if difference := self.difference(wanted):
            raise PowerlabError(f"{purpose} did not take effect: {difference}.")

    def difference(self, wanted: Iterable[Setting]) -> str | None:
        """Return in words the first setting that is not as wanted, None where all are.

        A limit that heat holds lower for now is as wanted.
        """
        now = {key_of(setting): setting.value for setting in self.read()}
        for setting in wanted:
            value = now.get(key_of(setting))
            if value is not None and setting.target.endswith(_SHOWS_WHAT_RUNS):
                continue
            if not self._is_as_wanted(setting, value):
                found = "cannot be read" if value is None else f"reads {value}"
                return f"{setting.knob} {setting.target} should be {setting.value} and {found}"
        return None

    def restore(self, previous: Sequence[Setting], touched: frozenset[Key]) -> tuple[Setting, ...]:
        """Put settings back; return those that were written.

        Settings a mode touched are always written, because a change that was cut short may look complete (nvpmodel can
        still name the old mode while half of the new one is set). All others are written where they differ. One that
        is refused is tried again at the end: it may depend on a later one.

        Raises:
            PowerlabError: a setting could not be put back, or reads back otherwise; all others are back then.
        """
        written: dict[Setting, None] = {}
        refused: dict[Setting, None] = {}
        for knob in self._knobs.values():
            own = [setting for setting in previous if setting.knob == knob.name]
            now = self._values(knob) if own else {}
            due = [one for one in own if now.get(key_of(one)) != one.value or key_of(one) in touched]
            self._try(knob, due, refused)
            # To write one may move another, as a limit moves the opposite one, or leave a range that cannot be read
            # before the rest is written. To read all after each write instead takes seconds on a machine of a hundred
            # cores.
            now = self._values(knob) if due else {}
            late = [
                one
                for one in (own if due else ())
                if not self._is_as_wanted(one, now.get(key_of(one))) and (key_of(one) in now or one not in due)
            ]
            self._try(knob, late, refused)
            written |= dict.fromkeys((*due, *late))
        failures = [failure for setting in refused if (failure := self._failure(setting))]
        if failures:
            raise failures[0]
        self.check(previous, "putting the previous settings back")
        return tuple(written)

    def _values(self, knob: Knob) -> dict[Key, str]:
        return {key_of(setting): setting.value for setting in self._read_knob(knob)}

    def _is_as_wanted(self, setting: Setting, value: str | None) -> bool:
        """Tell whether a setting has its value, or a lower one because heat holds it there for now."""
        return value == setting.value or bool(value and thermal_caps.explains(self._sysroot, setting, value))

    def _try(self, knob: Knob, settings: Iterable[Setting], refused: dict[Setting, None]) -> None:
        """Write settings; ``refused`` gets those that are, and loses those that are not any more."""
        for setting in settings:
            try:
                knob.write(self._sysroot, setting)
                refused.pop(setting, None)
            except (PowerlabError, OSError):
                refused[setting] = None

    def _failure(self, setting: Setting) -> PowerlabError | None:
        try:
            self.write([setting])
        except PowerlabError as error:
            return error
        except OSError as error:
            return PowerlabError(f"{setting.knob} {setting.target} does not go back to {setting.value} ({error}).")
        return None

    def survivors(self, settings: Iterable[Setting]) -> tuple[Setting, ...]:
        """Return those settings that outlive a reboot."""
        return tuple(setting for setting in settings if self._knob(setting).survives_reboot(setting))

    def _knob(self, setting: Setting) -> Knob:
        knob = self._knobs.get(setting.knob)
        if knob is None:
            raise PowerlabError(f"powerlab has no knob named {setting.knob!r} to set {setting.target} with.")
        return knob
