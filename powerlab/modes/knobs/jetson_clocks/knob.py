"""The knob ``jetson_clocks``: pins every clock of a Jetson to its upper limit, through NVIDIA's program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes import probing
from powerlab.modes.base import Form, KnobProbe
from powerlab.modes.io.delegation import may_set, set_by_helper
from powerlab.modes.io.files import read_value, write_value
from powerlab.modes.io.permissions import FilePermission, Permission, SettingPermission
from powerlab.modes.knobs.emc.pin import find_pin
from powerlab.modes.knobs.jetson_clocks.program import PROGRAM, is_pinned, let_clocks_go, pin_clocks
from powerlab.sysroot import Sysroot

MODE = "jetson-clocks"
_PINNED, _GATING, _MEMORY, _IDLE = "pinned", "gpu_power_gating", "emc_pin_hz", "idle_disabled"
_CPU = "/sys/devices/system/cpu"
_GATES = ("/sys/devices/platform/gpu.0/railgate_enable", "/sys/devices/gpu.0/railgate_enable")


class JetsonClocks:
    """Its settings are ``pinned``, and what the program changes beside the clocks that other knobs put back.

    Those are recorded here too, so that everything comes back even where the program's own file is gone.
    """

    name = "jetson_clocks"
    meaning = "all clocks of a Jetson pinned to their upper limits"
    forms: tuple[Form, ...] = ()
    permissions: tuple[Permission, ...] = (
        SettingPermission(target=_PINNED, values="yes|no"),
        FilePermission(path=rf"{_CPU}/cpu[0-9]{{1,4}}/cpuidle/state[0-9]{{1,2}}/disable", values="[01]"),
        *(FilePermission(path=path, values="[01]") for path in _GATES),
    )

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        """Say whether the program is there and this user may run it."""
        if not _present(sysroot):
            return probing.absent(self.name, "no jetson_clocks here: only NVIDIA Jetson boards have it")
        try:
            detail = f"clocks are {'' if is_pinned(sysroot) else 'not '}pinned"
        except PowerlabError as error:
            return probing.broken(self.name, str(error), "look into the files it names, or boot the board anew")
        return (
            probing.available(self.name, detail) if may_set(sysroot, self.name) else probing.denied(self.name, detail)
        )

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        """Return the one mode there is."""
        mode = PowerMode(
            name=MODE,
            settings=(Setting(knob=self.name, target=_PINNED, value="yes"),),
            origin=ModeOrigin.VENDOR,
            description="every clock pinned to its upper limit, idle states off",
        )
        return [mode] if _present(sysroot) else []

    def parse(self, sysroot: Sysroot, name: str) -> PowerMode | None:
        """Return the mode of that name."""
        return next((mode for mode in self.modes(sysroot) if mode.name == name), None)

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        """Return whether the clocks are pinned, and what else the program changes."""
        if not _present(sysroot):
            return []
        values = {_PINNED: "yes" if is_pinned(sysroot) else "no"}
        for directory in sysroot.glob(f"{_CPU}/cpu[0-9]*/cpuidle"):
            states = [_value(sysroot, path) for path in _idle_files(sysroot, directory)]
            if states and all(states):
                values[f"{directory.split('/')[-2]}.{_IDLE}"] = ",".join(states)
        gate = _gate(sysroot)
        pin = find_pin(sysroot)
        values |= {_GATING: _value(sysroot, gate) if gate else "", _MEMORY: (pin.read(sysroot) if pin else None) or ""}
        return [Setting(knob=self.name, target=target, value=value) for target, value in values.items() if value]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        """Pin all clocks or let them go, or put one of the other settings back."""
        gate, pin = _gate(sysroot), find_pin(sysroot)
        core, _, part = setting.target.partition(".")
        if setting.target == _PINNED:
            if not set_by_helper(sysroot, setting):
                (pin_clocks if setting.value == "yes" else let_clocks_go)(sysroot)
        elif setting.target == _GATING and gate:
            write_value(sysroot, gate, setting.value)
        elif setting.target == _MEMORY and pin:
            pin.write(sysroot, setting.value)
        elif part == _IDLE and re.fullmatch(r"cpu[0-9]+", core):
            files = _idle_files(sysroot, f"{_CPU}/{core}/cpuidle")
            for path, value in zip(files, setting.value.split(","), strict=False):
                write_value(sysroot, path, value)
        else:
            raise PowerlabError(f"jetson_clocks has no setting {setting.target!r} here; it has {_PINNED} = yes or no.")

    def survives_reboot(self, setting: Setting) -> bool:  # noqa: ARG002 - the same for every setting
        """No: the board starts with its mode's limits."""
        return False


def _present(sysroot: Sysroot) -> bool:
    return sysroot.path(PROGRAM).is_file()


def _idle_files(sysroot: Sysroot, directory: str) -> list[str]:
    paths = sysroot.glob(f"{directory}/state[0-9]*/disable")
    return sorted(paths, key=lambda path: int(re.findall(r"state(\d+)/", path)[0]))


def _gate(sysroot: Sysroot) -> str | None:
    return next((path for path in _GATES if sysroot.path(path).is_file()), None)


def _value(sysroot: Sysroot, path: str) -> str:
    try:
        return read_value(sysroot, path)
    except OSError:
        return ""
