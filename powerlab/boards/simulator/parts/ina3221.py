"""The INA3221 power monitors of a Jetson, as JetPack 4 (iio) and as JetPack 5 and 6 (hwmon) show them.

Source: Documentation/hwmon/ina3221.rst, and NVIDIA's iio driver in the 4.9 kernel; data sheet SBOS576.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from powerlab.boards.board import Board, Chip
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.boards.simulator.sensor import Sensor
from powerlab.sysroot import Sysroot

SHUNT_STEP_UV = 40
BUS_STEP_MV = 8
_NO_LIMIT_MA = "32760"
_UNUSED = "NC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a channel's registers say, in the driver's units."""

    voltage_mv: int
    current_ma: int

    @property
    def power_mw(self) -> int:
        """The product, as the JetPack 4 driver shows it."""
        return self.voltage_mv * self.current_ma // 1000

    def values(self) -> dict[str, int]:
        """Return voltage, current and power by the names the part's files go by."""
        return {"voltage": self.voltage_mv, "current": self.current_ma, "power": self.power_mw}


def quantised(drawn_w: float, supply_mv: int, shunt_uohm: int) -> Reading:
    """Round a power as the chip does: the current by 40 µV over the shunt, the voltage by 8 mV."""
    step_ma = SHUNT_STEP_UV * 1000 / shunt_uohm
    voltage_mv = round(supply_mv / BUS_STEP_MV) * BUS_STEP_MV
    steps = round(drawn_w * 1e6 / voltage_mv / step_ma)
    return Reading(voltage_mv=voltage_mv, current_ma=round(steps * step_ma))


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel of one chip: its rail (empty: unused), its files by what they hold, supply and shunt."""

    rail: str
    chip: Chip
    directory: str
    number: int
    files: Mapping[str, str]
    supply_mv: int
    shunt_uohm: int

    def reading(self, drawn_w: float) -> Reading:
        """Return what the chip makes of a power in W."""
        return quantised(drawn_w, self.supply_mv, self.shunt_uohm)


class Ina3221(Part):
    """Every chip of the board.

    Table: ``supply_mv`` and ``shunt_uohm``, each one value or one a rail; ``update_period_s``, ``averaging_s``,
    ``lag_s``, ``noise_relative`` and ``noise_w`` of the sensors; ``first_hwmon``.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the chips' channels."""
        super().__init__(board, table, variant)
        self._channels = [
            self._channel(chip, chip_number, number, rail)
            for chip_number, chip in enumerate(board.chips)
            for number, rail in enumerate(chip.channels)
        ]
        names = ("update_period_s", "averaging_s", "lag_s", "noise_relative", "noise_w")
        self._sensor_values = {name: table[name] for name in names if name in table}
        self._sensors: list[tuple[Channel, Sensor]] = []
        self._files = SensorFiles()

    def _channel(self, chip: Chip, chip_number: int, number: int, rail: str) -> Channel:
        device = chip_number + self.table.get("first_hwmon", 0)
        if self.jetpack == 4:
            directory = f"/sys/bus/i2c/drivers/ina3221x/{chip.address}/iio:device{device}"
            files = {kind: f"{directory}/in_{kind}{number}_input" for kind in ("voltage", "current", "power")}
        else:
            directory = f"/sys/bus/i2c/drivers/ina3221/{chip.address}/hwmon/hwmon{device}"
            files = {"voltage": f"{directory}/in{number + 1}_input", "current": f"{directory}/curr{number + 1}_input"}
        return Channel(
            rail=rail,
            chip=chip,
            directory=directory,
            number=number,
            files=files,
            supply_mv=self._value("supply_mv", rail),
            shunt_uohm=chip.shunt_uohm or self._value("shunt_uohm", rail),
        )

    def _value(self, name: str, rail: str) -> int:
        value = self.table[name]
        found: int = value.get(rail, 0) if isinstance(value, Mapping) else value
        return found

    def files(self, idle_w: Mapping[str, float]) -> Files:
        """Yield the files of every channel; unused ones are there, switched off and at 0."""
        for channel in self._channels:
            values = channel.reading(idle_w[channel.rail]).values() if channel.rail else {}
            for kind, path in channel.files.items():
                yield path, f"{values.get(kind, 0):<8d}"
            describe = _jetpack4_channel if self.jetpack == 4 else _hwmon_channel
            yield from describe(channel, values)

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the links that lead to the chips by class."""
        for directory in dict.fromkeys(channel.directory for channel in self._channels):
            name, below = directory.rpartition("/")[2], directory.removeprefix("/sys/")
            if self.jetpack == 4:
                yield f"/sys/bus/iio/devices/{name}", f"../../../{below}"
            else:
                yield f"/sys/class/hwmon/{name}", f"../../{below}"
                yield f"{directory}/device", "../.."

    def open(self, sysroot: Sysroot) -> None:
        """Open the readings."""
        super().open(sysroot)
        used = [channel for channel in self._channels if channel.rail]
        self._files.open(sysroot, [path for channel in used for path in channel.files.values()])
        self._sensors = [(channel, Sensor(**self._sensor_values)) for channel in used]

    def tick(self, moment: Moment) -> None:
        """Move the readings of the channels whose conversion is done."""
        for channel, sensor in self._sensors:
            drawn_w = sensor.observe(moment.now_ns, moment.rails_w[channel.rail], moment.noise)
            if drawn_w is not None:
                values = channel.reading(drawn_w).values()
                for kind, path in channel.files.items():
                    self._files.write(path, values[kind])

    def close(self) -> None:
        """Close the readings."""
        self._files.close()


def _jetpack4_channel(channel: Channel, _values: Mapping[str, int]) -> Files:
    directory, number = channel.directory, channel.number
    yield f"{directory}/rail_name_{number}", channel.rail or _UNUSED
    yield f"{directory}/warn_current_limit_{number}", _NO_LIMIT_MA
    yield f"{directory}/crit_current_limit_{number}", _NO_LIMIT_MA
    if number == 0:
        yield f"{directory}/name", "ina3221x"


def _hwmon_channel(channel: Channel, values: Mapping[str, int]) -> Files:
    directory, number = channel.directory, channel.number + 1
    yield f"{directory}/in{number}_label", channel.rail or _UNUSED
    yield f"{directory}/in{number}_enable", str(int(bool(channel.rail)))
    yield f"{directory}/shunt{number}_resistor", str(channel.shunt_uohm)
    yield f"{directory}/in{number + 3}_input", str(values.get("current", 0) * channel.shunt_uohm // 1000)
    for limit in ("max", "crit"):
        yield f"{directory}/curr{number}_{limit}", _NO_LIMIT_MA
        yield f"{directory}/curr{number}_{limit}_alarm", "0"
    if number == 1:
        yield f"{directory}/name", "ina3221"
        yield f"{directory}/in7_label", "sum of shunt voltages"
        yield f"{directory}/samples", "4"
        yield f"{directory}/update_interval", "2"
