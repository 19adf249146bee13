"""Shared by file-based sources: try each channel once, classify failures, and report the outcome."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import chain, count

from powerlab.domain.power import Availability, SourceProbe
from powerlab.domain.quantity import Provenance
from powerlab.power.base import Channel, FileChannel
from powerlab.privileged.reading import THROUGH_HELPER, read_anyway
from powerlab.sysroot import Sysroot

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_MAX_INTEGER = 2**63 - 1


def parse_integer(text: str) -> int:
    """Parse the one decimal integer a sysfs attribute holds.

    Raises:
        ValueError: the text is anything else, or does not fit into 64 bits as the sampler keeps it.
    """
    stripped = text.strip()
    if not _INTEGER.fullmatch(stripped):
        raise ValueError(f"not a decimal integer: {stripped[:40]!r}")
    value = int(stripped)
    if abs(value) > _MAX_INTEGER:
        raise ValueError(f"does not fit into 64 bits: {stripped}")
    return value


def read_integer(sysroot: Sysroot, path: str) -> int | None:
    """Return the integer in a file that may be missing, unreadable or hold something else: then None."""
    try:
        return parse_integer(read_anyway(sysroot, path)[0])
    except (OSError, ValueError):
        return None


def read_cell(sysroot: Sysroot, path: str) -> int:
    """Return a device-tree property of one big-endian cell, 0 where there is none."""
    try:
        return int.from_bytes(sysroot.path(path).read_bytes()[:4], "big")
    except OSError:
        return 0


def read_text(sysroot: Sysroot, path: str) -> str:
    """Return the text of a file that may be missing or unreadable: then the empty text."""
    try:
        return sysroot.read(path)
    except OSError:
        return ""


def natural(path: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that puts ``energy2`` before ``energy10``."""
    parts = re.findall(r"[0-9]+|[^0-9]+", path)
    return tuple((int(part), "") if part.isascii() and part.isdigit() else (-1, part) for part in parts)


def sensor_provenance(sysroot: Sysroot) -> Provenance:
    """Return what a sensor's figures are: measured, or simulated on a simulated board."""
    return Provenance.SIMULATED if sysroot.simulated else Provenance.MEASURED


@dataclass(slots=True)
class Scan:
    """The channels of one source that can be read now, and what was found but cannot."""

    channels: list[Channel] = field(default_factory=list)
    helped: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def add(self, sysroot: Sysroot, channel: FileChannel) -> None:
        """Read a channel's files once, through the privileged helper if need be, and keep the channel if that works."""
        channel = replace(channel, rail=replace(channel.rail, name=self._unique(_printable(channel.rail.name))))
        helped = False
        for path in channel.paths:
            try:
                text, through_helper = read_anyway(sysroot, path)
                value = parse_integer(text)
            except PermissionError:
                self.denied.append(channel.rail.name)
                return
            except (OSError, ValueError) as error:
                self.failed.append(f"{channel.rail.name} ({_reason(error)})")
                return
            if value == channel.invalid:
                self.failed.append(f"{channel.rail.name} (the driver answers 'unknown')")
                return
            helped |= through_helper
        self.channels.append(channel)
        if helped:
            self.helped.append(channel.rail.name)

    def _unique(self, name: str) -> str:
        """Return the name, numbered where another rail has it: what tells rails apart may itself be damaged."""
        taken = {channel.rail.name for channel in self.channels}
        numbered = (f"{name}#{number}" for number in count(2))
        return next(candidate for candidate in chain((name,), numbered) if candidate not in taken)

    def probe(self, source: str, *, absent: str, absent_remedy: str = "", denied_remedy: str) -> SourceProbe:
        """Put the outcome into words; ``absent`` is the sentence for a device that has nothing of this kind."""
        if self.channels:
            state, detail, remedy = Availability.AVAILABLE, _counted(len(self.channels)), ""
        elif self.denied:
            state, detail = Availability.DENIED, f"found {_listed(self.denied)}, but this user may not read"
            remedy = denied_remedy
        elif self.failed:
            state, detail = Availability.BROKEN, f"no rail gives a value: {_listed(self.failed)}"
            remedy = "see `dmesg` for the driver's own words; without this source another one or the estimate is used"
        else:
            state, detail, remedy = Availability.ABSENT, absent, absent_remedy
        if self.helped:
            detail = f"{detail}, {_listed(self.helped)} {THROUGH_HELPER}"
        if self.channels and self.denied:
            detail, remedy = f"{detail}; this user may not read {_listed(self.denied)}", denied_remedy
        if self.channels and self.failed:
            detail = f"{detail}; left out: {_listed(self.failed)}"
        rails = tuple(channel.rail for channel in self.channels)
        return SourceProbe(source=source, availability=state, detail=detail, remedy=remedy, rails=rails)


def _printable(name: str) -> str:
    """Return a name without what would steer a terminal; labels come from firmware."""
    return "".join(character if character.isprintable() else "?" for character in name)


def _reason(error: OSError | ValueError) -> str:
    return error.strerror or type(error).__name__ if isinstance(error, OSError) else str(error)


def _counted(rails: int) -> str:
    return f"{rails} rail{'s' * (rails != 1)} can be read"


def _listed(names: list[str], most: int = 4) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
