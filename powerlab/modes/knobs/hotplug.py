"""The knob ``hotplug``: which CPU cores are online (kernel, core-api/cpu_hotplug)."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import whole_of
from powerlab.sysroot import Sysroot

_DIRECTORY = "/sys/devices/system/cpu"
_FRACTIONS = (0.25, 0.5, 0.75)


class Hotplug:
    """Its settings are ``cpuN``, 1 or 0, of every core that can be taken offline.

    A core without a file ``online`` is always online, mostly the first one.
    """

    name = "hotplug"
    meaning = "how many CPU cores are online"
    forms: tuple[Form, ...] = (Form(name="cores=N", meaning="the first N cores online, all others off"),)
    permissions: tuple[Permission, ...] = (FilePermission(path=rf"{_DIRECTORY}/cpu[0-9]{{1,4}}/online", values="[01]"),)

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say how many cores can be taken offline, and whether this user may."""
        cores, movable = _cores(sysroot), _movable(sysroot)
        if not movable:
            return probing.absent(self.name, "no core can be taken offline here (the kernel or the machine does not)")
        online = sum(_is_online(sysroot, core) for core in cores)
        detail = f"{online} of {len(cores)} cores online"
        if fixed := len(cores) - len(movable):
            detail += f", {fixed} of them always" if fixed > 1 else ", one of them always"
        if not all(can_write(sysroot, _path(core)) for core in movable):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return modes with one core, and with a quarter, half and three quarters of them."""
        cores = _cores(sysroot)
        fixed = len(cores) - len(_movable(sysroot))
        counts = {1, *(max(1, round(share * len(cores))) for share in _FRACTIONS)}
        return [self._mode(sysroot, count) for count in sorted(counts) if max(fixed, 1) <= count < len(cores)]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with so many cores."""
        count = whole_of(name, "cores", "")
        if count is None:
            return None
        cores = _cores(sysroot)
        fewest = max(1, len(cores) - len(_movable(sysroot)))
        if not fewest <= count <= len(cores):
            always = f"; {fewest} cannot be taken offline" if fewest > 1 else ""
            raise PowerlabError(f"{name!r} cannot be set: choose from {fewest} to {len(cores)} cores{always}.")
        return self._mode(sysroot, count)

    def _mode(self, sysroot: Sysroot, count: int) -> PowerMode:
        cores, movable = _cores(sysroot), _movable(sysroot)
        always = [core for core in cores if core not in movable]
        kept = sorted([*always, *movable[: count - len(always)]])
        # Cores come online before others go off: there is no moment with fewer than either mode has.
        states = sorted(((core, core in kept) for core in movable), key=lambda state: (not state[1], state[0]))
        which = f"{kept[0]} to {kept[-1]}" if kept[-1] - kept[0] == count - 1 > 0 else ", ".join(map(str, kept))
        return PowerMode(
            name=f"cores={count}",
            settings=tuple(self._setting(core, online) for core, online in states),
            origin=ModeOrigin.INVENTED,
            online_cores=count,
            description=f"{count} core{'s' * (count > 1)} online ({which})",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return which cores are online, those that are first: they are written back first."""
        states = [(core, _is_online(sysroot, core)) for core in _movable(sysroot)]
        return [self._setting(core, online) for core, online in sorted(states, key=lambda s: (not s[1], s[0]))]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Take a core online or offline."""
        number = setting.target.removeprefix("cpu")
        if not number.isdecimal() or setting.value not in {"0", "1"}:
            raise PowerlabError(f"hotplug has no setting {setting.target} = {setting.value}; it has cpuN = 0 or 1.")
        write_value(sysroot, _path(int(number)), setting.value)

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the kernel starts with all cores online."""
        return False

    def _setting(self, core: int, online: bool) -> Setting:
        return Setting(knob=self.name, target=f"cpu{core}", value=str(int(online)))


def _cores(sysroot: Sysroot) -> list[int]:
    """Return the numbers of the cores the machine has, whether online or not."""
    names = (path.rpartition("/")[2].removeprefix("cpu") for path in sysroot.glob(f"{_DIRECTORY}/cpu[0-9]*"))
    return sorted(int(name) for name in names if name.isdecimal())


def _movable(sysroot: Sysroot) -> list[int]:
    return [core for core in _cores(sysroot) if sysroot.path(_path(core)).is_file()]


def _is_online(sysroot: Sysroot, core: int) -> bool:
    try:
        return read_value(sysroot, _path(core)) == "1"
    except OSError:
        return True  # no such file: it cannot be taken offline


def _path(core: int) -> str:
    return f"{_DIRECTORY}/cpu{core}/online"
