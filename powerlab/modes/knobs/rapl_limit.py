"""The knob ``rapl_limit``: power limits of x86 processor packages (kernel, power/powercap).

Each package has a long-term limit (constraint 0) and a short-term one (constraint 1), in µW. The platform's own domain
(psys) and the parts of a package are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import number_of
from powerlab.sysroot import Sysroot

_DIRECTORY = "/sys/class/powercap"
_ZONE = r"intel-rapl:[0-9]{1,3}"
_LIMITS = ("constraint_0_power_limit_uw", "constraint_1_power_limit_uw")
_MOST = "constraint_0_max_power_uw"
_ENABLED = "enabled"
_FILES = (*_LIMITS, _ENABLED)
_LEAST_W, _HIGHEST_W = 1.0, 999.0
_OFFERED_FRACTIONS = (0.5, 0.75)


class RaplLimit:
    """Its settings are ``ZONE.enabled`` and ``ZONE.constraint_N_power_limit_uw`` of every package."""

    name = "rapl_limit"
    meaning = "power limits of the processor packages"
    forms: tuple[Form, ...] = (Form(name="package-limit=NW", meaning="each processor package draws at most N W"),)
    permissions: tuple[Permission, ...] = (
        # Boards without limits say 4095.875 W, and that must go back too.
        FilePermission(path=rf"{_DIRECTORY}/{_ZONE}/constraint_[01]_power_limit_uw", values=r"[1-9][0-9]{6,9}"),
        FilePermission(path=rf"{_DIRECTORY}/{_ZONE}/{_ENABLED}", values="[01]"),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say how the packages are limited, and whether this user may change that."""
        zones = _zones(sysroot)
        if not zones:
            return probing.absent(self.name, "no processor package takes a power limit (Intel's do, under powercap)")
        detail = ", ".join(f"{_value(sysroot, zone, 'name')} up to {_limit_w(sysroot, zone):g} W" for zone in zones)
        if not all(can_write(sysroot, _path(zone, _LIMITS[0])) for zone in zones):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return limits of about 50 and 75 % of what the packages are built for, where they lie below the present."""
        zones = _zones(sysroot)
        if not zones:
            return []
        built_for = min(_number(sysroot, zone, _MOST) or _number(sysroot, zone, _LIMITS[0]) for zone in zones) / 1e6
        now = min(_limit_w(sysroot, zone) for zone in zones)
        offered = {round(share * built_for) for share in _OFFERED_FRACTIONS}
        return [
            self._mode(sysroot, f"package-limit={limit}W", limit)
            for limit in sorted(offered)
            if _LEAST_W <= limit < now
        ]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with that limit on every package."""
        limit = number_of(name, "package-limit", "W")
        if limit is None:
            return None
        stated = [most / 1e6 for zone in _zones(sysroot) if (most := _number(sysroot, zone, _MOST))]
        highest = min(stated, default=_HIGHEST_W)
        if not _LEAST_W <= limit <= highest:
            raise PowerlabError(f"{name!r} cannot be set: a package here takes {_LEAST_W:g} to {highest:g} W.")
        return self._mode(sysroot, name, limit)

    def _mode(self, sysroot: Sysroot, name: str, limit_w: float) -> PowerMode:
        settings = []
        for zone in _zones(sysroot):
            values = {file: str(round(limit_w * 1e6)) for file in _LIMITS} | {_ENABLED: "1"}
            settings += [
                Setting(knob=self.name, target=f"{zone}.{file}", value=values[file])
                for file in _FILES
                if file == _ENABLED or _number(sysroot, zone, file) >= _LEAST_W * 1e6  # less is no limit, but not used
                if _value(sysroot, zone, file)
            ]
        return PowerMode(
            name=name,
            settings=tuple(settings),
            origin=ModeOrigin.INVENTED,
            description=f"each processor package draws at most {limit_w:g} W",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return limits, and whether they are enforced, of every package."""
        return [
            Setting(knob=self.name, target=f"{zone}.{file}", value=value)
            for zone in _zones(sysroot)
            for file in _FILES
            if (value := _value(sysroot, zone, file))
        ]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Set one limit, or whether it is enforced, and make sure that it holds."""
        zone, _, file = setting.target.partition(".")
        if file not in _FILES or not re.fullmatch(_ZONE, zone):
            raise PowerlabError(f"rapl_limit has no setting {setting.target!r}; it has ZONE.{', .'.join(_FILES)}.")
        try:
            write_value(sysroot, _path(zone, file), setting.value)
        except PowerlabError as error:
            said = str(error).removesuffix(".")
            raise PowerlabError(f"{said}; where root is refused too, the firmware has locked the limits.") from None
        found = _value(sysroot, zone, file)
        if found != setting.value:
            raise PowerlabError(
                f"{_path(zone, file)} was set to {setting.value} and reads {found or 'nothing'}: the processor rounds"
                " its limits or holds its own; ask for what it reads."
            )

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the firmware sets its limits at each boot."""
        return False


def _zones(sysroot: Sysroot) -> list[str]:
    """Return the zones that are packages and take a limit; the memory-mapped twins of laptops are left out."""
    names = [path.rpartition("/")[2] for path in sysroot.glob(f"{_DIRECTORY}/intel-rapl:*")]
    return [
        name
        for name in names
        if re.fullmatch(_ZONE, name)
        and _value(sysroot, name, "name").startswith("package")
        and _number(sysroot, name, _LIMITS[0])
    ]


def _path(zone: str, file: str) -> str:
    return f"{_DIRECTORY}/{zone}/{file}"


def _value(sysroot: Sysroot, zone: str, file: str) -> str:
    try:
        return read_value(sysroot, _path(zone, file))
    except OSError:
        return ""


def _number(sysroot: Sysroot, zone: str, file: str) -> int:
    """Return the number in a file, 0 where there is none, which is also how the kernel says that it knows none."""
    value = _value(sysroot, zone, file)
    return int(value) if value.isdecimal() else 0


def _limit_w(sysroot: Sysroot, zone: str) -> float:
    return _number(sysroot, zone, _LIMITS[0]) / 1e6
