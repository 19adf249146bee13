"""The knob ``gpu_devfreq``: clock limits of a graphics processor under devfreq.

Source: kernel, ABI/testing/sysfs-class-devfreq. Jetson's, and those of ARM boards with the drivers panfrost, panthor or
mali. Clocks are in Hz.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.frequency_range import write_high, write_low
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.mode_value import whole_of
from powerlab.sysroot import Sysroot

_DIRECTORY = "/sys/class/devfreq"
_GPUS = r"(?:[0-9a-f]{4,16}\.)?(?:gpu|gm20b|gp10b|gv11b|ga10b|gb10b|mali)(?:-[a-z0-9]+){0,3}"
"""Names of devfreq devices that are graphics processors: an address and what the device tree calls them."""
_FILES = {"governor": "governor", "max_hz": "max_freq", "min_hz": "min_freq"}
"""Its settings and their files, in the order in which they are written back."""
_CAP_FRACTIONS = (0.25, 0.5, 0.75)
_MOST_DIGITS = 11
"""Of a clock in Hz; a longer number is a damaged file's."""


class GpuDevfreq:
    """Its settings are ``DEVICE.governor``, ``DEVICE.max_hz`` and ``DEVICE.min_hz``; its modes only move the limits."""

    name = "gpu_devfreq"
    meaning = "clock limits of the graphics processor"
    forms: tuple[Form, ...] = (
        Form(name="gpu-max=NHz", meaning="GPU clock up to N, rounded down to one that it has"),
        Form(name="gpu-min=NHz", meaning="GPU clock from N, rounded up to one that it has"),
    )
    permissions: tuple[Permission, ...] = (
        FilePermission(path=rf"{_DIRECTORY}/{_GPUS}/(min|max)_freq", values=r"[0-9]{1,11}"),
        FilePermission(path=rf"{_DIRECTORY}/{_GPUS}/governor", values=r"[a-z][a-z0-9_]{0,15}"),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say which graphics processors there are, and whether this user may set their limits."""
        devices = _devices(sysroot)
        if not devices:
            return probing.absent(
                self.name, "no graphics processor with a clock under devfreq (boards like Jetson have)"
            )
        detail = ", ".join(
            f"{device} from {_value(sysroot, device, 'min_hz')} to {_value(sysroot, device, 'max_hz')} Hz"
            for device in devices
        )
        if not all(_clocks(sysroot, device) for device in devices):
            return probing.broken(self.name, f"{detail}; the driver lists no clocks", "use a kernel whose driver does")
        if not all(can_write(sysroot, _path(device, "max_hz")) for device in devices):
            return probing.denied(self.name, detail)
        return probing.available(self.name, detail)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return caps at about 25, 50 and 75 % of the highest clock; those that would raise the limit are left out."""
        clocks = _all_clocks(sysroot)
        if not clocks:
            return []
        now = [int(limit) for device in _devices(sysroot) if (limit := _value(sysroot, device, "max_hz")).isdecimal()]
        caps = {min(clocks, key=lambda clock: abs(clock - share * clocks[-1])) for share in _CAP_FRACTIONS}
        return [
            self._mode(sysroot, f"gpu-max={cap}Hz", "max_hz", cap) for cap in sorted(caps) if cap < min(now, default=0)
        ]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with that limit; one between two clocks is rounded, so that it holds."""
        for key, part in (("gpu-max", "max_hz"), ("gpu-min", "min_hz")):
            limit = whole_of(name, key, "Hz")
            if limit is not None:
                clocks = _all_clocks(sysroot)
                if not clocks or not clocks[0] <= limit <= clocks[-1]:
                    span = f"from {clocks[0]} to {clocks[-1]} Hz" if clocks else "unknown"
                    raise PowerlabError(f"{name!r} cannot be set: the clocks of this GPU are {span}.")
                return self._mode(sysroot, name, part, limit)
        return None

    def _mode(self, sysroot: Sysroot, name: str, part: str, limit: int) -> PowerMode:
        rounded = {device: _rounded(_clocks(sysroot, device), part, limit) for device in _devices(sysroot)}
        clocks = " and ".join(f"{hz / 1e6:g}" for hz in sorted(set(rounded.values())))
        return PowerMode(
            name=name,
            settings=tuple(
                Setting(knob=self.name, target=f"{device}.{part}", value=str(hz)) for device, hz in rounded.items()
            ),
            origin=ModeOrigin.INVENTED,
            description=f"GPU clock {'up to' if part == 'max_hz' else 'from'} {clocks} MHz",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return governor and limits of every graphics processor."""
        return [
            Setting(knob=self.name, target=f"{device}.{part}", value=value)
            for device in _devices(sysroot)
            for part in _FILES
            if (value := _value(sysroot, device, part))
        ]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Make one setting; a limit takes the opposite one with it where that is in the way."""
        device, _, part = setting.target.rpartition(".")
        if part not in _FILES or not re.fullmatch(_GPUS, device):
            raise PowerlabError(f"gpu_devfreq has no setting {setting.target!r}; it has DEVICE.{', .'.join(_FILES)}.")
        if part == "governor" or not setting.value.isdecimal():
            write_value(sysroot, _path(device, part), setting.value)
        else:
            write = write_high if part == "max_hz" else write_low
            write(sysroot, _path(device, "min_hz"), _path(device, "max_hz"), int(setting.value))

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the driver starts with its own limits, and nvpmodel sets its mode's at boot."""
        return False


def _devices(sysroot: Sysroot) -> list[str]:
    names = [path.rpartition("/")[2] for path in sysroot.glob(f"{_DIRECTORY}/*")]
    return [name for name in names if re.fullmatch(_GPUS, name)]


def _path(device: str, part: str) -> str:
    return f"{_DIRECTORY}/{device}/{_FILES[part]}"


def _value(sysroot: Sysroot, device: str, part: str) -> str:
    try:
        return read_value(sysroot, _path(device, part))
    except OSError:
        return ""


def _clocks(sysroot: Sysroot, device: str) -> list[int]:
    try:
        words = sysroot.read(f"{_DIRECTORY}/{device}/available_frequencies").split()
    except OSError:
        return []
    return sorted(int(word) for word in words if word.isdecimal() and len(word) <= _MOST_DIGITS)


def _all_clocks(sysroot: Sysroot) -> list[int]:
    """Return the clocks of all devices in Hz; none where one of them lists none, for then nothing can be set alike."""
    found = [_clocks(sysroot, device) for device in _devices(sysroot)]
    return sorted({clock for clocks in found for clock in clocks}) if all(found) else []


def _rounded(clocks: Sequence[int], part: str, limit: int) -> int:
    if part == "max_hz":
        return max((clock for clock in clocks if clock <= limit), default=clocks[0])
    return min((clock for clock in clocks if clock >= limit), default=clocks[-1])
