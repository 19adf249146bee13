"""Chips under hwmon that give power, energy and temperatures, each described by the board's file.

Source: Documentation/hwmon/sysfs-interface.rst. Drivers of the old kind keep their files at the device and not at the
chip; ``at_device`` is for those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import core_numbers
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.boards.simulator.sensor import Sensor
from powerlab.sysroot import Sysroot

WIDTH = 20
_UNIT = 1e6
"""hwmon counts power in µW and energy in µJ."""
_COUNTED_BEFORE_UJ = 1_000_000_000
"""What a counter holds when the simulation starts: real ones have run since boot."""
_IDLE_SHARE = 0.05
"""What an idle core takes of the cores' energy at the same clock, as a share of what a busy one takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file that moves.

    Attributes:
        path: where it is.
        rail: the rail whose power or energy it shows.
        core: the core whose share of it this is; None for all of it.
        energy: whether it is a counter.
        sensor: the arguments of its :class:`Sensor`.
    """

    path: str
    rail: str
    core: int | None
    energy: bool
    sensor: Mapping[str, float]


class HwmonChips(Part):
    """All chips of a board.

    Table: ``chips``; each has ``name`` and ``device`` (below ``/sys/devices``), perhaps ``at_device``, ``files`` that
    never move, ``temperatures`` (their labels), and ``readings`` with ``file``, ``rail``, ``label``, ``per_core`` and
    what :class:`Sensor` takes. With ``per_core`` there is one for each core; ``{}`` in file and label is its number.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the chips' readings."""
        super().__init__(board, table, variant)
        self._readings = [reading for chip in self._chips() for reading in _readings(board, *chip)]
        self._sensors: dict[str, Sensor] = {}
        self._counted_j: dict[str, float] = {}
        self._files = SensorFiles(WIDTH)

    def _chips(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield where each chip's files lie, and its table."""
        for number, chip in enumerate(self.table["chips"]):
            device = f"/sys/devices/{chip['device']}"
            yield (device if chip.get("at_device") else f"{device}/hwmon/hwmon{number}"), chip

    def files(self, idle_w: Mapping[str, float]) -> Files:
        """Yield names, labels, what never moves, and the readings of the idle board."""
        cores = len(core_numbers(layout.simulation_of(self.board.name)))
        for directory, chip in self._chips():
            yield f"{directory}/name", chip["name"]
            for name, text in chip.get("files", {}).items():
                yield f"{directory}/{name}", str(text)
            for number, label in enumerate(chip.get("temperatures", ()), start=1):
                yield f"{directory}/temp{number}_label", label
                yield f"{directory}/temp{number}_input", f"{30000:<{WIDTH}d}"
            yield from _labels(self.board, directory, chip)
        for reading in self._readings:
            idle_uw = idle_w[reading.rail] / (1 if reading.core is None else cores) * _UNIT
            yield reading.path, f"{_COUNTED_BEFORE_UJ if reading.energy else round(idle_uw):<{WIDTH}d}"

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the links that lead to the chips by class, and from the chips to their devices."""
        for number, chip in enumerate(self.table["chips"]):
            device = f"devices/{chip['device']}"
            yield f"/sys/class/hwmon/hwmon{number}", f"../../{device}/hwmon/hwmon{number}"
            yield f"/sys/{device}/hwmon/hwmon{number}/device", "../.."

    def open(self, sysroot: Sysroot) -> None:
        """Open the readings and the temperatures."""
        super().open(sysroot)
        self._files.open(sysroot, [*(reading.path for reading in self._readings), *self._temperatures()])
        self._sensors = {r.path: Sensor(**r.sensor) for r in self._readings if not r.energy}
        self._counted_j = {reading.path: 0.0 for reading in self._readings if reading.energy}

    def _temperatures(self) -> list[str]:
        return [
            f"{directory}/temp{number}_input"
            for directory, chip in self._chips()
            for number, _ in enumerate(chip.get("temperatures", ()), start=1)
        ]

    def tick(self, moment: Moment) -> None:
        """Move the counters, the powers whose period is over and, now and then, the temperatures."""
        shares = core_shares(moment)
        for reading in self._readings:
            true_w = moment.rails_w[reading.rail]
            if reading.core is not None:
                true_w *= shares.get(reading.core, 0.0)
            if reading.energy:
                self._counted_j[reading.path] += true_w * moment.passed_s
                self._files.write(reading.path, _COUNTED_BEFORE_UJ + int(self._counted_j[reading.path] * _UNIT))
                continue
            seen_w = self._sensors[reading.path].observe(moment.now_ns, true_w, moment.noise)
            if seen_w is not None:
                self._files.write(reading.path, round(seen_w * _UNIT))
        if moment.looked:
            for path in self._temperatures():
                self._files.write(path, round(moment.warmth_c * 1000))

    def close(self) -> None:
        """Close the files."""
        self._files.close()


def core_shares(moment: Moment) -> dict[int, float]:
    """Return each online core's share of what all take, by its number: by clock, and idle ones far less."""
    online = [core for policy in moment.settings.policies for core in policy.online_cores]
    weights = {
        number: core.busy_khz if index < moment.state.busy_cores else core.idle_khz * _IDLE_SHARE
        for index, (number, core) in enumerate(zip(online, moment.state.cores, strict=True))
    }
    whole = sum(weights.values())
    return {number: weight / whole for number, weight in weights.items()}


def _readings(board: Board, directory: str, chip: Mapping[str, Any]) -> Iterator[Reading]:
    for table in chip.get("readings", ()):
        sensor = {key: value for key, value in table.items() if key not in {"file", "label", "rail", "per_core"}}
        for core, number in _numbers(board, table):
            yield Reading(
                path=f"{directory}/{table['file'].format(number)}",
                rail=table["rail"],
                core=core,
                energy=table["file"].startswith("energy"),
                sensor=sensor,
            )


def _labels(board: Board, directory: str, chip: Mapping[str, Any]) -> Files:
    for table in chip.get("readings", ()):
        for core, number in _numbers(board, table):
            if "label" in table:
                stem = table["file"].format(number).rpartition("_")[0]
                yield f"{directory}/{stem}_label", table["label"].format(core)


def _numbers(board: Board, table: Mapping[str, Any]) -> Iterator[tuple[int | None, int]]:
    """Yield the core and the number of each of a table's files; hwmon counts from 1."""
    if not table.get("per_core"):
        yield None, 1
        return
    for number, core in enumerate(core_numbers(layout.simulation_of(board.name)), start=1):
        yield core, number
