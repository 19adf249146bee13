"""Parse ``/etc/nvpmodel.conf`` and the output of ``nvpmodel -q``. Pure functions of text.

The format, from the files NVIDIA ships: ``< PARAM TYPE=FILE|CLOCK NAME=X >`` blocks of ``ARGUMENT path`` lines, then
``< POWER_MODEL ID=n NAME=s >`` blocks of ``PARAM ARGUMENT value`` lines, and ``< PM_CONFIG DEFAULT=n >``. Numbers need
not be dense. Blocks of other kinds (the fan's) are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from powerlab.domain.errors import PowerlabError

_HEADER = re.compile(r"<\s*([A-Z_]+)\b\s*(.*?)\s*>\s*$")
_FIELD = re.compile(r"(\w+)=(\S+)")
_MODE_LINE = re.compile(r"^\s*NV Power Mode:[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_NUMBER_LINE = re.compile(r"^\s*(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Something nvpmodel sets: ``kind`` is FILE, CLOCK or HWMON, ``paths`` the file behind each argument."""

    name: str
    kind: str
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """One mode of the table; ``values`` are (parameter, argument) -> value, as written."""

    id: int
    name: str
    values: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NvpmodelConf:
    """The whole file."""

    parameters: Mapping[str, Parameter]
    models: tuple[PowerModel, ...]
    default_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeNow:
    """What ``nvpmodel -q`` said; both None where no mode of the table is set, which is legal."""

    id: int | None
    name: str | None


def parse_conf(text: str) -> NvpmodelConf:
    """Return the content of an ``nvpmodel.conf``.

    Raises:
        PowerlabError: a mode has no number or no name, or two modes share one, or there is no mode at all.
    """
    parameters: dict[str, Parameter] = {}
    models: dict[int, PowerModel] = {}
    default_id: int | None = None
    paths: dict[str, str] | None = None
    values: dict[tuple[str, str], str] | None = None
    for line in (line.partition("#")[0].strip() for line in text.splitlines()):
        if header := _HEADER.match(line):
            kind, fields = header[1], dict(_FIELD.findall(header[2]))
            paths = values = None
            if kind == "PARAM" and "NAME" in fields:
                paths = {}
                parameters[fields["NAME"]] = Parameter(name=fields["NAME"], kind=fields.get("TYPE", ""), paths=paths)
            elif kind == "POWER_MODEL":
                values = {}
                model = _model(line, fields, values)
                if model.id in models or any(model.name == other.name for other in models.values()):
                    raise PowerlabError(f"nvpmodel.conf defines the mode {line} twice; remove one of the two.")
                models[model.id] = model
            elif kind == "PM_CONFIG" and fields.get("DEFAULT", "").isdecimal():
                default_id = int(fields["DEFAULT"])
        elif paths is not None and len(words := line.split()) == 2:
            paths[words[0]] = words[1]
        elif values is not None and len(words := line.split()) == 3:
            values[words[0], words[1]] = words[2]
    if not models:
        raise PowerlabError("nvpmodel.conf defines no power mode; restore the file NVIDIA ships.")
    return NvpmodelConf(parameters=parameters, models=tuple(models.values()), default_id=default_id)


def _model(line: str, fields: Mapping[str, str], values: Mapping[tuple[str, str], str]) -> PowerModel:
    if not fields.get("ID", "").isdecimal() or "NAME" not in fields:
        raise PowerlabError(f"nvpmodel.conf has a mode without number or name ({line}); fix that line.")
    return PowerModel(id=int(fields["ID"]), name=fields["NAME"], values=values)


def parse_query(text: str) -> ModeNow:
    """Return the mode ``nvpmodel -q`` printed, whatever warnings surround it."""
    name = _MODE_LINE.search(text)
    if name is None:
        return ModeNow(id=None, name=None)
    number = _NUMBER_LINE.search(text, name.end())
    return ModeNow(id=int(number[1]) if number else None, name=name[1] or None)
