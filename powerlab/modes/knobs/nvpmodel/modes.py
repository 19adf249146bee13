"""The modes of the knob ``nvpmodel``, from the blocks of the device's table."""

from __future__ import annotations

from powerlab.boards.registry import detect
from powerlab.domain.mode import ModeOrigin, PowerMode, Setting
from powerlab.modes.io.files import read_value
from powerlab.modes.knobs.nvpmodel.conf import NvpmodelConf, PowerModel
from powerlab.modes.knobs.nvpmodel.program import query
from powerlab.sysroot import Sysroot

KNOB, MODE_TARGET = "nvpmodel", "mode"
_CORES = "CPU_ONLINE"
_HIGH = "MAX_FREQ"
_MASK = "_PG_MASK"


def vendor_modes(sysroot: Sysroot, conf: NvpmodelConf) -> list[PowerMode]:
    """Return every mode of the table."""
    known = {mode.name for mode in detect(sysroot).vendor_modes if mode.requires_reboot}
    always = _always_online(sysroot, conf)
    return [
        PowerMode(
            name=model.name,
            settings=(Setting(knob=KNOB, target=MODE_TARGET, value=str(model.id)),),
            origin=ModeOrigin.VENDOR,
            requires_reboot=_requires_reboot(sysroot, conf, model, model.name in known),
            online_cores=_online_cores(model, always),
            description=_description(model, always),
        )
        for model in conf.models
    ]


def _requires_reboot(sysroot: Sysroot, conf: NvpmodelConf, model: PowerModel, known: bool) -> bool:
    """Say whether a mode changes which parts of the GPU have power, which the board only takes at its next boot.

    The masks in the device's own table say so, compared with those in force; where none can be read, what powerlab
    knows of the board has to do, and that the device is in the mode already.
    """
    changes = []
    for (parameter, argument), value in model.values.items():
        path = conf.parameters[parameter].paths.get(argument) if parameter in conf.parameters else None
        if path and argument.endswith(_MASK):
            try:
                changes.append(int(read_value(sysroot, path), 0) != int(value, 0))
            except (OSError, ValueError):
                continue
    return any(changes) if changes else known and query(sysroot).id != model.id


def _always_online(sysroot: Sysroot, conf: NvpmodelConf) -> int:
    """Return how many cores no mode switches: a TX2's table leaves out core 0, which is always online."""
    switched = conf.parameters[_CORES].paths if _CORES in conf.parameters else {}
    return max(0, len(sysroot.glob("/sys/devices/system/cpu/cpu[0-9]*")) - len(switched))


def _online_cores(model: PowerModel, always: int) -> int | None:
    cores = [value for (parameter, _), value in model.values.items() if parameter == _CORES]
    return cores.count("1") + always if cores else None


def _description(model: PowerModel, always: int) -> str:
    """Say in one line what a mode allows: cores, and the caps of the clocks in MHz."""
    caps: dict[str, float] = {}
    for (parameter, argument), value in model.values.items():
        part = "CPU" if parameter.startswith("CPU") else parameter
        if argument == _HIGH and part in {"CPU", "GPU", "EMC"} and value.isdecimal() and int(value) > 0:
            caps[part] = max(caps.get(part, 0.0), int(value) / (1e3 if part == "CPU" else 1e6))
    cores = _online_cores(model, always)
    parts = [f"{cores} cores"] if cores else []
    parts += [
        f"{part} up to {caps[part]:g} MHz" if part in caps else f"{part} uncapped" for part in ("CPU", "GPU", "EMC")
    ]
    return ", ".join(parts)
