"""The knob ``emc``: the cap of a Jetson's memory clock (external memory controller), in Hz.

The cap is a file that nvpmodel writes too; 0 lifts it. Boards without such a file may show the firmware's own clock in
debugfs: it can only be pinned, not capped, and only root sees it.
"""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.files import can_write, read_value, write_value
from powerlab.modes.io.permissions import FilePermission, Permission
from powerlab.modes.knobs.emc.pin import PINS, find_pin
from powerlab.modes.knobs.nvpmodel.conf import parse_conf
from powerlab.modes.mode_value import whole_of
from powerlab.sysroot import Sysroot

_CAPS = ("/sys/kernel/nvpmodel_clk_cap/emc", "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap")
"""JetPack 5 and 6 on Orin; JetPack 4 and 5 on Xavier and older boards."""
_CONF = "/etc/nvpmodel.conf"
_CAP_TARGET, _PIN_TARGET = "cap_hz", "pin_hz"
_LOWEST_HZ, _HIGHEST_HZ = 40_000_000, 20_000_000_000
"""Bounds where the device tells none: no board's memory clock lies outside, and a number in kHz or MHz does."""
_MOST_OFFERED = 4


class Emc:
    """Its setting is ``cap_hz``, or ``pin_hz`` where the clock can only be pinned; 0 is no cap and not pinned."""

    name = "emc"
    meaning = "the memory clock of a Jetson"
    forms: tuple[Form, ...] = (Form(name="emc-max=NHz", meaning="memory clock up to N (0: as high as the board goes)"),)
    permissions: tuple[Permission, ...] = (
        *(FilePermission(path=path, values=r"0|[0-9]{8,11}") for path in _CAPS),
        *(FilePermission(path=pin.rate, values=r"[0-9]{8,11}") for pin in PINS),
        *(FilePermission(path=pin.lock, values="[01]") for pin in PINS),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say what limits the memory clock, and whether this user may set it."""
        target = _target(sysroot)
        if target is None:
            return probing.absent(self.name, "no cap of the memory clock here: NVIDIA Jetson boards have one")
        value = _read(sysroot, target)
        if value is None:
            return probing.broken(self.name, "the memory clock's file holds no number", "reinstall the board's kernel")
        state = "not limited" if value == "0" else f"{'capped' if target == _CAP_TARGET else 'pinned'} at {value} Hz"
        pin = find_pin(sysroot)
        if not can_write(sysroot, _cap_path(sysroot) or (pin.lock if pin else "")):
            return probing.denied(self.name, state)
        return probing.available(self.name, state)

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return the caps of the vendor's own modes that lie below the present one."""
        target = _target(sysroot)
        now = int((target and _read(sysroot, target)) or 0) or _HIGHEST_HZ
        low, high = _bounds(sysroot)
        caps = sorted(cap for cap in _vendor_caps(sysroot) if low <= cap <= high and cap < now)
        return [self._mode(target, f"emc-max={cap}Hz", cap) for cap in caps[-_MOST_OFFERED:] if target]

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode with that cap."""
        cap, target = whole_of(name, "emc-max", "Hz"), _target(sysroot)
        if cap is None or target is None:
            return None
        low, high = _bounds(sysroot)
        if cap and not low <= cap <= high:
            raise PowerlabError(f"{name!r} cannot be set: give {low} to {high} Hz, or 0 for no cap.")
        return self._mode(target, name, cap)

    def _mode(self, target: str, name: str, cap: int) -> PowerMode:
        limit = f"{'up to' if target == _CAP_TARGET else 'pinned at'} {cap / 1e6:g} MHz" if cap else "not limited"
        return PowerMode(
            name=name,
            settings=(Setting(knob=self.name, target=target, value=str(cap)),),
            origin=ModeOrigin.INVENTED,
            description=f"memory clock {limit}",
        )

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return the cap, or at which clock it is pinned."""
        target = _target(sysroot)
        value = target and _read(sysroot, target)
        return [Setting(knob=self.name, target=target, value=value)] if target and value is not None else []

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Cap, pin or free the memory clock."""
        cap = _cap_path(sysroot)
        if setting.target == _CAP_TARGET and cap:
            write_value(sysroot, cap, setting.value)
        elif setting.target == _PIN_TARGET and (pin := find_pin(sysroot)):
            pin.write(sysroot, setting.value)
        else:
            raise PowerlabError(f"emc has no setting {setting.target!r} here; it has {_target(sysroot) or 'none'}.")

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: nvpmodel writes its mode's cap at each boot."""
        return False


def _cap_path(sysroot: Sysroot) -> str | None:
    return next((path for path in _CAPS if sysroot.path(path).is_file()), None)


def _target(sysroot: Sysroot) -> str | None:
    if _cap_path(sysroot):
        return _CAP_TARGET
    return _PIN_TARGET if find_pin(sysroot) else None


def _read(sysroot: Sysroot, target: str) -> str | None:
    """Return the value of a setting, None where the device gives no number."""
    if target == _PIN_TARGET:
        pin = find_pin(sysroot)
        return pin.read(sysroot) if pin else None
    try:
        value = read_value(sysroot, _cap_path(sysroot) or "")
    except OSError:
        return None
    return value if value.isdecimal() else None


def _bounds(sysroot: Sysroot) -> tuple[int, int]:
    pin = find_pin(sysroot)
    return (pin.bounds(sysroot) if pin else None) or (_LOWEST_HZ, _HIGHEST_HZ)


def _vendor_caps(sysroot: Sysroot) -> set[int]:
    try:
        models = parse_conf(sysroot.read(_CONF)).models
    except (OSError, PowerlabError):
        return set()
    values = {model.values.get(("EMC", "MAX_FREQ"), "") for model in models}
    return {int(value) for value in values if value.isdecimal() and int(value) > 0}
