"""Power modes by name: one knob's mode, parts joined with ``+``, and sets of parts that the device's owner has named.

``MODE_15W`` is the vendor's; ``cores=4+cpu-max=1190400kHz+gpu-max=522750000Hz`` is invented, of parts of several knobs;
``quiet`` may stand in ``/etc/powerlab/modes.toml``, below ``[modes]``, as ``quiet = "cores=2+epp=power"``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob
from powerlab.sysroot import Sysroot

OWN_MODES = "/etc/powerlab/modes.toml"
_JOINT = "+"


def find_mode(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> PowerMode | None:
    """Return the mode of that name, None where no knob knows it or one of its parts.

    Raises:
        PowerlabError: a part is impossible on this device, two parts set the same thing, or the owner's file is
            malformed.
    """
    if name == CURRENT_MODE.name:
        return CURRENT_MODE
    usable = [knob for knob in knobs if knob.probe(sysroot).availability is Availability.AVAILABLE]
    if mode := _of_one_knob(sysroot, usable, name):
        return mode
    text = own_modes(sysroot).get(name, name)
    if text == name and _JOINT not in name:
        return None
    parts = [_of_one_knob(sysroot, usable, part.strip()) for part in text.split(_JOINT)]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        if text != name:
            raise PowerlabError(f"{OWN_MODES} names {name} = {text!r}, which this device cannot do; mend that line.")
        return None
    return _joined(name, known, [knob.name for knob in knobs])


def why_not(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> str | None:
    """Return in words why a part of a name cannot be set although a knob knows its form; None where none does."""
    for part in name.split(_JOINT):
        key = f"{part.partition('=')[0]}="
        for knob in knobs:
            probe = knob.probe(sysroot)
            if probe.availability is Availability.AVAILABLE:
                continue
            if any(form.name.startswith(key) for form in knob.forms) or _lists(sysroot, knob, part):
                remedy = f"; {probe.remedy}" if probe.remedy else ""
                return f"{part} cannot be set: {knob.name} is {probe.availability.value} here ({probe.detail}){remedy}."
    return None


def _lists(sysroot: Sysroot, knob: Knob, name: str) -> bool:
    try:
        return any(mode.name == name for mode in knob.modes(sysroot))
    except PowerlabError:
        return False


def own_modes(sysroot: Sysroot) -> Mapping[str, str]:
    """Return the modes the device's owner has named, name to parts; none where there is no file.

    Raises:
        PowerlabError: the file cannot be read or is malformed.
    """
    try:
        document = tomllib.loads(sysroot.read(OWN_MODES))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PowerlabError(f"{OWN_MODES} cannot be read ({error.strerror}); make it readable or remove it.") from None
    except tomllib.TOMLDecodeError as error:
        raise PowerlabError(f"{OWN_MODES} is no TOML ({error}); mend it or remove it.") from None
    modes = document.get("modes", {})
    if not isinstance(modes, dict) or not all(isinstance(text, str) for text in modes.values()):
        raise PowerlabError(f'{OWN_MODES} needs a table [modes] of lines like  quiet = "cores=2+epp=power".')
    return modes


def _of_one_knob(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> PowerMode | None:
    modes = (knob.parse(sysroot, name) for knob in knobs)
    return next((mode for mode in modes if mode is not None), None)


def _joined(name: str, parts: Sequence[PowerMode], order: Sequence[str]) -> PowerMode:
    """Return the mode that makes all settings of its parts, knob after knob in the order they are written back."""
    settings: dict[tuple[str, str], Setting] = {}
    for part in parts:
        for setting in part.settings:
            known = settings.setdefault((setting.knob, setting.target), setting)
            if known.value != setting.value:
                raise PowerlabError(
                    f"{name} sets {setting.knob} {setting.target} both to {known.value} and to {setting.value}; "
                    "leave one of the two parts out."
                )
    cores = [part.online_cores for part in parts if part.online_cores is not None]
    return replace(
        parts[0],
        name=name,
        settings=tuple(sorted(settings.values(), key=lambda setting: order.index(setting.knob))),
        origin=ModeOrigin.INVENTED,
        requires_reboot=any(part.requires_reboot for part in parts),
        online_cores=min(cores, default=None),
        description="; ".join(part.description for part in parts),
    )
