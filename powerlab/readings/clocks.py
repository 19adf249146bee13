"""Clocks as they are now: of each CPU cluster, of graphics processors, and of the memory where it is shown."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from powerlab.modes.knobs.emc.pin import PINS
from powerlab.modes.knobs.gpu_devfreq import GpuDevfreq
from powerlab.nvml_library import Library, NvmlError
from powerlab.sysroot import Sysroot
from powerlab.throttling.reading import first_line, integer
from powerlab.throttling.requested_clock import actual_khz, parse_processors

_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
_DEVFREQ = "/sys/class/devfreq"
_CARD_CLOCKS = ((0, "clock"), (2, "memory"))
"""nvml.h, nvmlClockType_t: NVML_CLOCK_GRAPHICS and NVML_CLOCK_MEM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock in MHz, and what limits it to (None where nothing says so)."""

    name: str
    clock_mhz: float
    limit_mhz: float | None = None
    governor: str = ""


def read_clocks(sysroot: Sysroot, cards: tuple[Library, range] | None) -> tuple[Clock, ...]:
    """Return all clocks that can be read; one that cannot is left out, and is not 0 MHz."""
    return (*_cpu(sysroot), *_devfreq(sysroot), *_memory(sysroot), *(_cards(*cards) if cards else ()))


def _cpu(sysroot: Sysroot) -> Iterator[Clock]:
    """Yield the clock of each cluster; cores that each have their own, and are set alike, are one with a mean clock."""
    clusters: dict[tuple[object, ...], list[tuple[frozenset[int], int]]] = {}
    for path in sorted(sysroot.glob(_POLICIES), key=lambda path: int(re.sub(r"\D", "", path) or 0)):
        processors, khz = parse_processors(first_line(sysroot, f"{path}/affected_cpus")), actual_khz(sysroot, path)
        if khz and processors:
            limits = [integer(sysroot, f"{path}/{file}") for file in ("scaling_max_freq", "cpuinfo_max_freq")]
            alone = "" if len(processors) == 1 else path
            kind = (limits[0], limits[1], first_line(sysroot, f"{path}/scaling_governor"), alone)
            clusters.setdefault(kind, []).append((processors, khz))
    for (limit_khz, _, governor, _), policies in clusters.items():
        yield Clock(
            name=f"CPU {_span(frozenset().union(*(processors for processors, _ in policies)))}",
            clock_mhz=statistics.fmean(khz for _, khz in policies) / 1e3,
            limit_mhz=limit_khz / 1e3 if isinstance(limit_khz, int) else None,
            governor=str(governor),
        )


def _span(numbers: frozenset[int]) -> str:
    """Return numbers with neighbours joined: ``0,3-5``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in found)


def _devfreq(sysroot: Sysroot) -> Iterator[Clock]:
    limits = GpuDevfreq().read(sysroot)
    for setting in limits:
        device, _, part = setting.target.rpartition(".")
        hz = integer(sysroot, f"{_DEVFREQ}/{device}/cur_freq")
        if part == "max_hz" and hz:
            limit_hz = float(setting.value) if setting.value.isdecimal() else None
            yield Clock(
                name="GPU",
                clock_mhz=hz / 1e6,
                limit_mhz=limit_hz / 1e6 if limit_hz else None,
                governor=first_line(sysroot, f"{_DEVFREQ}/{device}/governor"),
            )


def _memory(sysroot: Sysroot) -> Iterator[Clock]:
    hz = next((hz for pin in PINS if (hz := integer(sysroot, pin.rate))), None)
    if hz:
        yield Clock(name="memory", clock_mhz=hz / 1e6)


def _cards(library: Library, cards: range) -> Iterator[Clock]:
    for index in cards:
        for kind, word in _CARD_CLOCKS:
            try:
                card = library.device(index)
                mhz = float(library.ask("nvmlDeviceGetClockInfo", card, kind))
                limit_mhz = float(library.ask("nvmlDeviceGetMaxClockInfo", card, kind))
            except NvmlError:
                continue  # cards differ in what they tell, and one may be gone
            yield Clock(name=f"GPU{index} {word}", clock_mhz=mhz, limit_mhz=limit_mhz)
