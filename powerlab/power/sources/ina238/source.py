"""The INA238 family of power monitors (INA228, 237, 238, 700, 780, SQ52206), through Linux's own driver.

The driver gives power in µW and, for the chips that add it up themselves, energy in µJ; it enables 16 averages of
1.052 ms for each of bus, shunt and temperature. Source: Documentation/hwmon/ina238.rst, Documentation/devicetree/
bindings/hwmon/ti,ina2xx.yaml. Rails are named by the board's description, by the label in the device tree, or by the
chip's address. Where a board's description lists its chips, others are no rails of it: USB-PD controllers and carrier
boards have such chips, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from powerlab.boards.board import Board, Chip
from powerlab.boards.registry import detect
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe
from powerlab.power.base import Channel, FileChannel
from powerlab.power.sources.hwmon.chip import HwmonChip, find_chips
from powerlab.power.sources.ina238.chips import CHIPS, WIDE_GAIN, power_errors
from powerlab.power.sources.scan import Scan, read_cell, read_integer, read_text, sensor_provenance
from powerlab.sysroot import Sysroot

_CONVERSIONS_S = 16 * 3 * 1.052e-3
_UNUSED = ("", "NC")

_ABSENT = "no power monitor of the INA238 family"
_DENIED_REMEDY = (
    "until the next boot: `sudo chmod a+r /sys/class/hwmon/hwmon*/{power1,energy1,in1}_input` in bash, or run powerlab "
    "with sudo"
)


@dataclass(frozen=True, slots=True)
class _Found:
    """The chips that are rails, and the names of those that are not."""

    rails: tuple[tuple[HwmonChip, str], ...]
    foreign: tuple[str, ...]


class Ina238:
    """Each chip is one rail: its energy counter where it has one, else its power."""

    name = "ina238"
    root_files: tuple[str, ...] = (
        r"/sys/bus/i2c/drivers/ina(2xx|238)/[0-9]+-[0-9a-f]{4}/hwmon/hwmon[0-9]+/(in|curr|power)[0-9]+_input",
    )

    def probe(self, sysroot: Sysroot) -> SourceProbe:
        """Say what is there, and which chips are none of the board's rails."""
        found = _find(sysroot)
        scan = _scan(sysroot, found)
        foreign = f"not rails of this board, by its description: {', '.join(found.foreign)}" if found.foreign else ""
        probe = scan.probe(self.name, absent=foreign or _ABSENT, denied_remedy=_DENIED_REMEDY)
        if not foreign or probe.availability is Availability.ABSENT:
            return probe
        return SourceProbe(
            source=probe.source,
            availability=probe.availability,
            detail=f"{probe.detail}; {foreign}",
            remedy=probe.remedy,
            rails=probe.rails,
        )

    def channels(self, sysroot: Sysroot) -> Sequence[Channel]:
        """Return the chips that can be read now."""
        return _scan(sysroot, _find(sysroot)).channels


def _find(sysroot: Sysroot) -> _Found:
    board = detect(sysroot)
    rails: list[tuple[HwmonChip, str]] = []
    foreign = []
    names: set[str] = set()
    for chip in find_chips(sysroot):
        if chip.name not in CHIPS:
            continue
        rail_name = _rail_name(sysroot, board, chip)
        if rail_name is None:
            foreign.append(f"{chip.name} {chip.device}")
            continue
        unique = f"{rail_name}@{chip.device}" if rail_name in names else rail_name
        names.add(unique)
        rails.append((chip, unique))
    return _Found(tuple(rails), tuple(foreign))


def _described(board: Board, chip: HwmonChip) -> Chip | None:
    return next((known for known in board.chips if known.address == chip.device), None)


def _rail_name(sysroot: Sysroot, board: Board, chip: HwmonChip) -> str | None:
    """Return the name of a chip's rail, None where the board's description says that it is none of its rails."""
    if board.chips:
        known = _described(board, chip)
        name = known.channels[0] if known and known.channels else ""
        return name or None
    for file in ("label", "power1_label", "in1_label"):
        label = read_text(sysroot, f"{chip.directory}/{file}").replace("\0", "").strip()
        if label.upper() not in _UNUSED:
            return label
    return f"{chip.name}@{chip.device}"


def _scan(sysroot: Sysroot, found: _Found) -> Scan:
    scan = Scan()
    for chip, rail_name in found.rails:
        for channel in _channels(sysroot, chip, rail_name):
            before = len(scan.channels)
            scan.add(sysroot, channel)
            if len(scan.channels) > before:
                break
    return scan


def _channels(sysroot: Sysroot, chip: HwmonChip, rail_name: str) -> Iterator[FileChannel]:
    """Yield how to read a chip, best first: a counter misses nothing that happens between two samples."""
    kind = CHIPS[chip.name]
    node = f"{chip.directory}/device/of_node"
    known = _described(detect(sysroot), chip)
    shunt_uohm = (
        read_integer(sysroot, f"{chip.directory}/shunt_resistor")
        or read_cell(sysroot, f"{node}/shunt-resistor")
        or (known.shunt_uohm if known else None)
        or 0
    )
    gain = read_cell(sysroot, f"{node}/ti,shunt-gain") or WIDE_GAIN
    errors = power_errors(kind, shunt_uohm, gain, read_integer(sysroot, f"{chip.directory}/in1_input") or 0)
    period_s = max(read_integer(sysroot, f"{chip.directory}/update_interval") or 0, 0) * 1e-3 or _CONVERSIONS_S
    power_w = (read_integer(sysroot, f"{chip.directory}/power1_input") or 0) * 1e-6
    for quantity in (RailQuantity.ENERGY, RailQuantity.POWER):
        path = f"{chip.directory}/{quantity}1_input"
        counter = quantity is RailQuantity.ENERGY
        if counter and not read_text(sysroot, path):
            continue
        # A counter adds its offset up with the rest, so there it is an error of the gain: as large as it is now.
        share = errors.offset_w / power_w if counter and power_w > 0 else 0.0
        rail = Rail(
            source=Ina238.name,
            name=rail_name,
            quantity=quantity,
            resolution=errors.step_w * period_s if counter else errors.step_w,
            relative_error=min(1.0, kind.relative_error + share),
            update_period_s=period_s,
            provenance=sensor_provenance(sysroot),
            offset=0.0 if counter else errors.offset_w,
        )
        yield FileChannel(rail=rail, paths=(path,), scale=1e-6)
