"""Every other chip under hwmon that gives power in µW or energy in µJ.

Among them Ampere Altra, X-Gene, ACPI power meters (NVIDIA Grace too), AMD graphics and power supplies. Source:
Documentation/hwmon/{sysfs-interface,acpi_power_meter,xgene-hwmon}.rst. The number in ``hwmonN`` moves between boots, so
a chip is known by its name and its device.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from powerlab.domain.power import Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.scan import Scan, natural, read_integer, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_OTHER_SOURCES = ("ina3221",)
_PLAIN_CHIPS = ("altra_hwmon", "apm_xgene", "xgene_hwmon", "power_meter")
"""Chips whose labels say enough; elsewhere ``PPT`` or ``pin`` needs the chip's name before it."""
_ATTRIBUTE = re.compile(r"(power|energy)([0-9]{1,4})_(input|average)")
_UNKNOWN_UW = 4294967295000
"""What the ACPI power meter gives for "unknown": 0xFFFFFFFF mW."""
_RELATIVE_ERROR = 0.1
"""Most chips state none, and most of these readings are not calibrated."""

_ABSENT = "no hwmon chip that gives power or energy"
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/{power,energy}*_{input,average}` in bash, or run "
    "powerlab with sudo"
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

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there."""
        return _scan(sysroot).probe(self.name, absent=_ABSENT, denied_remedy=_DENIED_REMEDY)

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return the readings that can be read now."""
        return _scan(sysroot).channels


def _scan(sysroot: Sysroot) -> Scan:
    found = [entry for chip in _chips(sysroot) for entry in _readings(sysroot, chip)]
    counts = Counter(channel.rail.name for _, channel in found)
    scan = Scan()
    seen: set[str] = set()
    for device, channel in found:
        name = channel.rail.name
        if counts[name] > 1:
            name = f"{name} @{device}"
        if name in seen:
            name = f"{name}/{channel.paths[0].rpartition('/')[2]}"
        seen.add(name)
        scan.add(sysroot, replace(channel, rail=replace(channel.rail, name=name)))
    return scan


def _chips(sysroot: Sysroot) -> list[str]:
    """Return the chips' directories ordered by device, which unlike ``hwmonN`` is the same at every boot."""
    chips = sysroot.glob("/sys/class/hwmon/hwmon*")
    return sorted(chips, key=lambda chip: (natural(_device(sysroot, chip)), natural(chip)))


def _device(sysroot: Sysroot, chip: str) -> str:
    """Return the name of the device behind a chip, for example ``APMC0D29:00`` or ``0000:03:00.0``."""
    device = sysroot.path(f"{chip}/device")
    return device.resolve().name if device.exists() else chip.rpartition("/")[2]


def _readings(sysroot: Sysroot, chip: str) -> Iterator[tuple[str, FileChannel]]:
    chip_name = read_text(sysroot, f"{chip}/name")
    if chip_name in _OTHER_SOURCES:
        return
    taken: set[tuple[RailQuantity, int]] = set()
    # "input" sorts after "average" but says more: what is drawn now.
    for path in sorted(sysroot.glob(f"{chip}/*_input") + sysroot.glob(f"{chip}/*_average"), key=_input_first):
        try:
            attribute = parse_attribute(path.rpartition("/")[2])
        except ValueError:
            continue
        slot = (attribute.quantity, attribute.index)
        if slot not in taken:
            taken.add(slot)
            yield _device(sysroot, chip), _channel(sysroot, chip, chip_name, path, attribute)


def _input_first(path: str) -> tuple[bool, tuple[tuple[int, str], ...]]:
    return (path.endswith("_average"), natural(path))


def _channel(sysroot: Sysroot, chip: str, chip_name: str, path: str, attribute: Attribute) -> FileChannel:
    stem = f"{chip}/{attribute.quantity}{attribute.index}"
    energy = attribute.quantity is RailQuantity.ENERGY
    interval_ms = 0 if energy else read_integer(sysroot, f"{stem}_average_interval") or 0
    try:
        relative_error = parse_accuracy(read_text(sysroot, f"{stem}_accuracy"))
    except ValueError:
        relative_error = _RELATIVE_ERROR
    rail = Rail(
        source=Hwmon.name,
        name=_rail_name(sysroot, chip_name, stem, attribute),
        quantity=attribute.quantity,
        resolution=1e-6 if energy else 0.0,
        relative_error=relative_error,
        update_period_s=max(interval_ms, 0) * 1e-3,
        provenance=sensor_provenance(sysroot),
    )
    return FileChannel(rail=rail, paths=(path,), scale=1e-6, invalid=None if energy else _UNKNOWN_UW)


def _rail_name(sysroot: Sysroot, chip_name: str, stem: str, attribute: Attribute) -> str:
    label = read_text(sysroot, f"{stem}_label") or read_text(sysroot, f"{stem}_oem_info")
    label = " ".join(label.replace("\0", " ").split())
    if label and chip_name in _PLAIN_CHIPS:
        return label
    if not label and attribute.index > 1:
        label = f"{attribute.quantity}{attribute.index}"
    return f"{chip_name or 'unnamed'} {label}".strip()
