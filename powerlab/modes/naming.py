"""Names of power modes: one knob's mode, parts joined with ``+``, and sets that the device's owner has named.

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
JOINT = "+"


def find_mode(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> PowerMode | None:
    """Return the mode of that name, None where no knob knows it or one of its parts.

    Raises:
        PowerlabError: a part is impossible on this device, two parts set the same thing, or the owner's file is
            malformed.
    """
    if name == CURRENT_MODE.name:
        return CURRENT_MODE
    usable = _usable(sysroot, knobs)
    if mode := _of_one_knob(sysroot, usable, name):
        return mode
    order = [knob.name for knob in knobs]
    text = own_modes(sysroot).get(name)
    if text is None:
        return _of_parts(sysroot, usable, name, name, order) if JOINT in name else None
    try:
        mode = _of_parts(sysroot, usable, name, text, order)
        reason = why_not(sysroot, knobs, text) or "it has no mode of that name or of a part's name."
    except PowerlabError as error:
        mode, reason = None, str(error)
    if mode is None:
        raise PowerlabError(f"fix {OWN_MODES}: it says {name} = {text!r}, which this device cannot do: {reason}")
    return mode


def listed_own_modes(sysroot: Sysroot, knobs: Sequence[Knob]) -> tuple[tuple[PowerMode, ...], tuple[str, ...]]:
    """Return the modes that the owner's file names, and a sentence for each line of it that cannot be used."""
    try:
        own = own_modes(sysroot)
    except PowerlabError as error:
        return (), (str(error),)
    modes: list[PowerMode] = []
    problems: list[str] = []
    usable = _usable(sysroot, knobs)
    for name in own:
        try:
            taken = name == CURRENT_MODE.name or _of_one_knob(sysroot, usable, name) is not None
            mode = None if taken else find_mode(sysroot, knobs, name)
        except PowerlabError as error:
            problems.append(str(error))
            continue
        if mode is None:
            problems.append(f"fix {OWN_MODES}: the device has a mode {name} without it; give yours another name.")
        else:
            modes.append(mode)
    return tuple(modes), tuple(problems)


def why_not(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> str | None:
    """Return in words why a part of a name cannot be set although its form is known; None where it is not."""
    parts = name.split(JOINT)
    if len(parts) > 1 and CURRENT_MODE.name in parts:
        return f"{name!r} cannot be set: `{CURRENT_MODE.name}` changes nothing and is no part of others; leave it out."
    for part in parts:
        key = f"{part.partition('=')[0]}="
        for knob in knobs:
            probe = knob.probe(sysroot)
            if probe.availability is Availability.AVAILABLE:
                continue
            if any(form.name.startswith(key) for form in knob.forms) or _lists(sysroot, knob, part):
                remedy = f"; {probe.remedy}" if probe.remedy else ""
                return f"{part} cannot be set: {knob.name} is {probe.availability.value} here: {probe.detail}{remedy}."
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
        raise PowerlabError(f"{OWN_MODES} is not valid TOML ({error}); fix it or remove it.") from None
    modes = document.get("modes", {})
    if not isinstance(modes, dict) or not all(isinstance(text, str) for text in modes.values()):
        raise PowerlabError(f'{OWN_MODES} needs a table [modes] of lines like  quiet = "cores=2+epp=power".')
    return modes


def _usable(sysroot: Sysroot, knobs: Sequence[Knob]) -> list[Knob]:
    return [knob for knob in knobs if knob.probe(sysroot).availability is Availability.AVAILABLE]


def _of_one_knob(sysroot: Sysroot, knobs: Sequence[Knob], name: str) -> PowerMode | None:
    modes = (knob.parse(sysroot, name) for knob in knobs)
    return next((mode for mode in modes if mode is not None), None)


def _of_parts(sysroot: Sysroot, knobs: Sequence[Knob], name: str, text: str, order: Sequence[str]) -> PowerMode | None:
    parts = [_of_one_knob(sysroot, knobs, part.strip()) for part in text.split(JOINT)]
    known = [part for part in parts if part is not None]
    return _joined(name, known, order) if len(known) == len(parts) else None


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
