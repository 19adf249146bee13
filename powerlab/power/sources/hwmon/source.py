"""All other hwmon chips that report power in µW or energy in µJ.

Among them Ampere Altra, X-Gene, ACPI power meters (NVIDIA Grace too), SCMI firmware and power supplies.
Source: Documentation/hwmon/{sysfs-interface,acpi_power_meter,xgene-hwmon,pmbus,corsair-psu}.rst, drivers/hwmon
(scmi-hwmon). The number in ``hwmonN`` moves between boots, so a chip is known by its name and its device. Graphics
cards have sources of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.graphics_chips import DRIVERS as GRAPHICS_DRIVERS
from powerlab.power.sources.hwmon.chip import HwmonChip, find_chips
from powerlab.power.sources.hwmon.known_chips import UNSTATED_ERROR, facts, is_regulator
from powerlab.power.sources.ina238.chips import CHIPS as INA238_CHIPS
from powerlab.power.sources.scan import Scan, natural, read_integer, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_OTHER_SOURCES = ("ina3221", *INA238_CHIPS, *GRAPHICS_DRIVERS)
_PLAIN_CHIPS = ("altra_hwmon", "apm_xgene", "xgene_hwmon", "power_meter")
"""Chips whose labels say enough; elsewhere ``PPT`` or ``pin`` needs the chip's name before it."""
_ATTRIBUTE = re.compile(r"(power|energy)([0-9]{1,4})_(input|average)")
_UNKNOWN_UW = 4294967295000
"""What the ACPI power meter gives for "unknown": 0xFFFFFFFF mW."""

_ABSENT = "no hwmon chip that gives power or energy"
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/{,device/}{power,energy}*_{input,average}` in bash, "
    "or run powerlab with sudo"
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A hwmon file that gives power or energy: ``power1_average`` is quantity power, index 1, kind average."""

    quantity: RailQuantity
    index: int
    kind: str


def parse_attribute(file_name: str) -> Attribute:
    """Parse a hwmon file's name.

    Raises:
        ValueError: the file gives neither power nor energy now, for example ``power1_cap`` or ``temp1_input``.
    """
    match = _ATTRIBUTE.fullmatch(file_name)
    if match is None or match.groups()[0::2] == ("energy", "average"):
        raise ValueError(f"not a power or energy reading: {file_name[:40]!r}")
    return Attribute(RailQuantity(match[1]), int(match[2]), match[3])


def parse_accuracy(text: str) -> float:
    """Turn an ACPI power meter's accuracy ("95.0%") into a relative error (0.05).

    Raises:
        ValueError: the text is no percentage from 0 to 100.
    """
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%?", text.strip())
    if match is None or float(match[1]) > 100:
        raise ValueError(f"not a percentage: {text.strip()[:40]!r}")
    return round(1 - float(match[1]) / 100, 9)


class Hwmon:
    """A rail is named by its label; the chip's name stands before it where the label alone says little."""

    name = "hwmon"
    # Power, energy, and what power is the product of (kernel, hwmon/sysfs-interface); older drivers have the attributes
    # at the device (kernel, hwmon/acpi_power_meter).
    root_files: tuple[str, ...] = (
        r"/sys/class/hwmon/hwmon[0-9]+/(device/)?(power|energy)[0-9]+_(input|average)",
        r"/sys/class/hwmon/hwmon[0-9]+/(device/)?(in|curr)[0-9]+_input",
    )

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        return _scan(sysroot).probe(self.name, absent=_ABSENT, denied_remedy=_DENIED_REMEDY)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return the readings that can be read now."""
        return _scan(sysroot).channels


def _scan(sysroot: Sysroot) -> Scan:
    scan = Scan()
    found = []
    for chip in find_chips(sysroot):
        # What the power_supply class mirrors into hwmon (BAT0, USB-PD ports) says nothing about rails.
        if chip.name not in _OTHER_SOURCES and not chip.is_power_supply(sysroot):
            found += [(chip, channel) for channel in _readings(sysroot, chip)]
    counts = Counter(channel.rail.name for _, channel in found)
    seen: set[str] = set()
    for chip, channel in found:
        name = channel.rail.name
        if counts[name] > 1:
            name = f"{name} @{chip.device}"
        if name in seen:
            name = f"{name}/{channel.paths[0].rpartition('/')[2]}"
        seen.add(name)
        if _is_battery(sysroot, channel):
            scan.failed.append(f"{name} (it measures a battery, not the machine)")
        else:
            scan.add(sysroot, replace(channel, rail=replace(channel.rail, name=name)))
    return scan


def _readings(sysroot: Sysroot, chip: HwmonChip) -> Iterator[FileChannel]:
    taken: set[tuple[RailQuantity, int]] = set()
    counted: set[str] = set()
    for path, attribute in _attributes(sysroot, chip):
        label = _label(sysroot, chip, attribute)
        slot = (attribute.quantity, attribute.index)
        # A power under the label of an energy counter is the same thing seen twice; the counter misses nothing.
        if slot in taken or (attribute.quantity is RailQuantity.POWER and label in counted):
            continue
        taken.add(slot)
        if attribute.quantity is RailQuantity.ENERGY and label:
            counted.add(label)
        yield _channel(sysroot, chip, path, attribute, label)


def _attributes(sysroot: Sysroot, chip: HwmonChip) -> list[tuple[str, Attribute]]:
    """Return the chip's readings: energy first, and "input" before "average", for it says what is drawn now."""
    found = []
    for path in sysroot.glob(f"{chip.directory}/*_input") + sysroot.glob(f"{chip.directory}/*_average"):
        try:
            found.append((path, parse_attribute(path.rpartition("/")[2])))
        except ValueError:
            continue
    return sorted(found, key=lambda entry: (entry[1].quantity, entry[1].kind == "average", natural(entry[0])))


def _channel(sysroot: Sysroot, chip: HwmonChip, path: str, attribute: Attribute, label: str) -> FileChannel:
    energy = attribute.quantity is RailQuantity.ENERGY
    known = facts(chip.name, label, (read_integer(sysroot, path) or 0) * 1e-6)
    rail = Rail(
        source=Hwmon.name,
        name=_rail_name(sysroot, chip, attribute, label),
        quantity=attribute.quantity,
        resolution=1e-6 if energy else known.step_w,
        relative_error=_stated_error(sysroot, chip, attribute) or known.relative_error,
        update_period_s=_stated_period_s(sysroot, chip, attribute) or known.update_period_s,
        provenance=sensor_provenance(sysroot),
    )
    return FileChannel(rail=rail, paths=(path,), scale=1e-6, invalid=None if energy else _UNKNOWN_UW)


def _stated_error(sysroot: Sysroot, chip: HwmonChip, attribute: Attribute) -> float | None:
    """Return the error that a meter states; 100.0 % is what firmware says that was never asked, and states none."""
    try:
        error = parse_accuracy(read_text(sysroot, f"{chip.directory}/{attribute.quantity}{attribute.index}_accuracy"))
    except ValueError:
        return None
    return min(error, 1.0) if error > 0 else UNSTATED_ERROR


def _stated_period_s(sysroot: Sysroot, chip: HwmonChip, attribute: Attribute) -> float:
    """Return how often the value changes by the chip's own files (both in ms), 0 where they say nothing."""
    stem = f"{chip.directory}/{attribute.quantity}{attribute.index}"
    averaged_ms = read_integer(sysroot, f"{stem}_average_interval") or 0
    converted_ms = read_integer(sysroot, f"{chip.directory}/update_interval") or 0
    return max(averaged_ms, converted_ms, 0) * 1e-3


def _is_battery(sysroot: Sysroot, channel: FileChannel) -> bool:
    stem = channel.paths[0].rpartition("_")[0]
    return read_integer(sysroot, f"{stem}_is_battery") == 1


def _label(sysroot: Sysroot, chip: HwmonChip, attribute: Attribute) -> str:
    stem = f"{chip.directory}/{attribute.quantity}{attribute.index}"
    label = read_text(sysroot, f"{stem}_label") or read_text(sysroot, f"{stem}_oem_info")
    return " ".join(label.replace("\0", " ").split())


def _rail_name(sysroot: Sysroot, chip: HwmonChip, attribute: Attribute, label: str) -> str:
    if label and chip.name in _PLAIN_CHIPS:
        return label
    if is_regulator(label, read_integer(sysroot, f"{chip.directory}/in1_input")):
        label = f"regulator_{label}"
    if not label and (attribute.index > 1 or attribute.quantity is RailQuantity.ENERGY):
        label = f"{attribute.quantity}{attribute.index}"
    return f"{chip.name or 'unnamed'} {label}".strip()
