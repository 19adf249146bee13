"""The interface every fault fulfils, and what it works on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator.parts.base import Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.sysroot import Sysroot

_POWER_NAMES = re.compile(r"(in_)?(in|curr|current|voltage|power|energy)(\d|_)", re.ASCII)
SENSOR_PARTS = ("ina3221", "ina238", "hwmon_chips", "rapl", "battery")
"""Tables of the parts that keep a board's power readings in files."""


@dataclass(frozen=True, slots=True)
class PowerSensor:
    """One sensor that gives power or energy: its files, which some part keeps open."""

    directory: str
    paths: tuple[str, ...]
    files: SensorFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A running board, as faults get hold of it."""

    sysroot: Sysroot
    board: Board
    simulation: Mapping[str, Any]
    parts: tuple[Part, ...]

    def power_sensors(self) -> list[PowerSensor]:
        """Return every sensor in the parts' order: files of one directory with the same number belong together."""
        found: dict[tuple[str, str], tuple[list[str], SensorFiles]] = {}
        for files in self._sensor_files():
            for path in files.paths:
                directory, _, name = path.rpartition("/")
                if _POWER_NAMES.match(name):
                    number = re.sub(r"\D", "", name)
                    found.setdefault((directory, number), ([], files))[0].append(path)
        return [PowerSensor(directory, tuple(paths), files) for (directory, _), (paths, files) in found.items()]

    def _sensor_files(self) -> Iterator[SensorFiles]:
        for part in self.parts:
            yield from (value for value in vars(part).values() if isinstance(value, SensorFiles))

    def files_below(self, directory: str) -> Iterator[tuple[SensorFiles, str]]:
        """Yield every file below a directory that a part keeps open."""
        for files in self._sensor_files():
            yield from ((files, path) for path in files.paths if path.startswith(f"{directory}/"))


class Fault:
    """One fault: faults override what they do.

    Attributes:
        name: unique in the registry.
        summary: one line for people.
        needs: tables ``[simulation.NAME]`` of which a board must have one, for the fault to be possible there.
        lacks: what a board without them does not have, in words.
    """

    name = ""
    summary = ""
    needs: tuple[str, ...] = ()
    lacks = ""

    def __init__(self, bench: Bench) -> None:
        """Prepare; nothing happens yet."""
        self.bench = bench

    def begin(self) -> None:
        """Let the fault happen. Raises OSError where a file cannot be changed."""

    def tick(self, moment: Moment) -> None:
        """Go on, after every part has moved."""

    def end(self) -> None:
        """Put right what can be put right."""
