"""The INA3221 power monitors of Jetson boards, in both layouts NVIDIA's kernels have used.

JetPack 4 has an IIO driver with a power file in mW; JetPack 5 and 6 have the hwmon driver, where power is the product
of bus voltage (mV) and current (mA). Source: Documentation/hwmon/ina3221.rst; TI datasheet SBOS576.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from powerlab.boards.registry import detect
from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.scan import Scan, natural, read_cell, read_integer, sensor_provenance
from powerlab.sysroot import Sysroot

_IIO = "/sys/bus/i2c/drivers/ina3221x/*/iio:device*"
_HWMON = "/sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*"
_UNUSED_LABELS = ("NC", "")
_SHUNT_STEP_UV = 40.0
_OFFSET_STEPS = 2.0
"""By how many steps all readings may be off together: TI bounds the offset to 80 µV (SBOS576)."""
_SMALLEST_SHUNT_UOHM = 2000
"""Stands in for a shunt that nobody states: no Jetson is known with a smaller one, and a smaller one steps wider."""
_AVERAGES = (1, 4, 16, 64, 128, 256, 512, 1024)
_CONVERSION_US = (140, 204, 332, 588, 1100, 2116, 4156, 8244)
_RELATIVE_ERROR = 0.015
"""Datasheet gain errors of 0.25 % for voltage and for current, and shunt resistors of 1 %."""

_ABSENT = "no INA3221 power monitor: this is no Jetson board, or its driver is not loaded"
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod -R a+r /sys/bus/i2c/drivers/ina3221*/*-00*/`, or run powerlab with sudo; some "
    "releases show the rails to root alone"
)


def parse_label(text: str) -> str | None:
    """Return a channel's rail name, None for a channel that the board leaves unconnected ("NC" or nothing)."""
    label = text.replace("\0", "").strip()
    return None if label.upper() in _UNUSED_LABELS else label


def power_step_w(shunt_uohm: float, voltage_mv: float) -> float:
    """Return the step of a power reading in W: one 40 µV step over the shunt, times the bus voltage; 0 if unknown."""
    return _SHUNT_STEP_UV / shunt_uohm * voltage_mv * 1e-3 if shunt_uohm > 0 and voltage_mv > 0 else 0.0


def conversion_period_s(config: int) -> float:
    """Return how often a chip's readings change, in s, from its configuration register (SBOS576, table 4).

    Bits 14 to 12 enable channels, 11 to 9 choose how many conversions are averaged, 8 to 6 and 5 to 3 how long one of
    the bus and one of the shunt takes; one after the other.
    """
    channels = (config >> 12 & 7).bit_count()
    conversion_us = _CONVERSION_US[config >> 6 & 7] + _CONVERSION_US[config >> 3 & 7]
    return channels * _AVERAGES[config >> 9 & 7] * conversion_us * 1e-6


class Ina3221:
    """Each connected channel is a rail under the name the board gives it."""

    name = "ina3221"
    # JetPack 5 and 6, then 4 (kernel, hwmon/ina3221; NVIDIA's driver ina3221x).
    root_files: tuple[str, ...] = (
        r"/sys/bus/i2c/drivers/ina3221/[0-9]+-[0-9a-f]{4}/hwmon/hwmon[0-9]+/(in|curr|power)[0-9]+_input",
        r"/sys/bus/i2c/drivers/ina3221x/[0-9]+-[0-9a-f]{4}/iio:device[0-9]+/in_(voltage|current|power)[0-9]+_input",
    )

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        return _scan(sysroot).probe(self.name, absent=_ABSENT, denied_remedy=_DENIED_REMEDY)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return the channels that can be read now."""
        return _scan(sysroot).channels


def _label(sysroot: Sysroot, path: str) -> str | None:
    """Read a label; one that only root may read still says that a rail is there, so it keeps its file's name."""
    try:
        return parse_label(sysroot.read(path))
    except PermissionError:
        return path.rpartition("/")[2]
    except OSError:
        return None


def _scan(sysroot: Sysroot) -> Scan:
    scan = Scan()
    seen: set[str] = set()
    for address, rail_name, channel in (*_iio_channels(sysroot), *_hwmon_channels(sysroot)):
        unique = f"{rail_name}@{address}" if rail_name in seen else rail_name
        seen.add(unique)
        scan.add(sysroot, channel(unique))
    return scan


class _Builder:
    """Makes a channel once its rail's name is known to be unique."""

    def __init__(self, sysroot: Sysroot, paths: tuple[str, ...], scale: float, step_w: float, period_s: float) -> None:
        self._provenance = sensor_provenance(sysroot)
        self._paths, self._scale, self._step_w, self._period_s = paths, scale, step_w, period_s

    def __call__(self, rail_name: str) -> FileChannel:
        rail = Rail(
            source=Ina3221.name,
            name=rail_name,
            quantity=RailQuantity.POWER,
            resolution=self._step_w,
            relative_error=_RELATIVE_ERROR,
            update_period_s=self._period_s,
            provenance=self._provenance,
            offset=_OFFSET_STEPS * self._step_w,
        )
        return FileChannel(rail=rail, paths=self._paths, scale=self._scale)


def _iio_channels(sysroot: Sysroot) -> Iterator[tuple[str, str, _Builder]]:
    """JetPack 4: channels 0 to 2.

    The shunt and the averaging are in the device tree there; for the shunt powerlab's description stands in, then a
    bound. The averaging is that of the driver's continuous mode; where it measures at each read, readings are fresher.
    """
    known_uohm = {chip.address: chip.shunt_uohm for chip in detect(sysroot).chips}
    for chip in sorted(sysroot.glob(_IIO), key=natural):
        address = chip.split("/")[-2]
        node = f"{chip.rpartition('/')[0]}/of_node"
        period_s = conversion_period_s(read_cell(sysroot, f"{node}/ti,continuous-config"))
        for index in range(3):
            rail_name = _label(sysroot, f"{chip}/rail_name_{index}")
            if rail_name is None:
                continue
            voltage_mv = read_integer(sysroot, f"{chip}/in_voltage{index}_input") or 0
            stated_uohm = read_cell(sysroot, f"{node}/channel@{index}/ti,shunt-resistor-mohm") * 1000
            step_w = power_step_w(stated_uohm or known_uohm.get(address) or _SMALLEST_SHUNT_UOHM, voltage_mv)
            yield address, rail_name, _Builder(sysroot, (f"{chip}/in_power{index}_input",), 1e-3, step_w, period_s)


def _hwmon_channels(sysroot: Sysroot) -> Iterator[tuple[str, str, _Builder]]:
    """JetPack 5 and 6: channels 1 to 3; in4 to in7 are shunt voltages and no rails."""
    known_uohm = {chip.address: chip.shunt_uohm for chip in detect(sysroot).chips}
    for chip in sorted(sysroot.glob(_HWMON), key=natural):
        address = chip.split("/")[-3]
        period_s = max(read_integer(sysroot, f"{chip}/update_interval") or 0, 0) * 1e-3
        for index in (1, 2, 3):
            rail_name = _label(sysroot, f"{chip}/in{index}_label")
            if rail_name is None or read_integer(sysroot, f"{chip}/in{index}_enable") == 0:
                continue
            paths = (f"{chip}/in{index}_input", f"{chip}/curr{index}_input")
            stated_uohm = read_integer(sysroot, f"{chip}/shunt{index}_resistor")
            shunt_uohm = stated_uohm or known_uohm.get(address) or _SMALLEST_SHUNT_UOHM
            step_w = power_step_w(shunt_uohm, read_integer(sysroot, paths[0]) or 0)
            yield address, rail_name, _Builder(sysroot, paths, 1e-6, step_w, period_s)
