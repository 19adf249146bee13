"""Clocks as they are now: of each CPU cluster, of graphics processors, and of the memory where it is shown."""

from __future__ import annotations

import re
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
    for path in sorted(sysroot.glob(_POLICIES), key=lambda path: int(re.sub(r"\D", "", path) or 0)):
        processors = parse_processors(first_line(sysroot, f"{path}/affected_cpus"))
        khz, limit_khz = actual_khz(sysroot, path), integer(sysroot, f"{path}/scaling_max_freq")
        if khz and processors:
            yield Clock(
                name=f"CPU {_span(processors)}",
                clock_mhz=khz / 1e3,
                limit_mhz=limit_khz / 1e3 if limit_khz else None,
                governor=first_line(sysroot, f"{path}/scaling_governor"),
            )


def _span(numbers: frozenset[int]) -> str:
    """Return ``0-3`` for neighbours, else all numbers."""
    low, high = min(numbers), max(numbers)
    if high - low + 1 == len(numbers):
        return f"{low}-{high}" if high > low else f"{low}"
    return ",".join(map(str, sorted(numbers)))


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
