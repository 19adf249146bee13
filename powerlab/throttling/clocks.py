"""Where a device shows its clocks: CPU clusters (cpufreq), a graphics processor (devfreq), memory, graphics cards.

Sources: the kernel's Documentation/admin-guide/pm/cpufreq and ABI/testing/sysfs-class-devfreq.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator
from functools import partial

from powerlab.modes.knobs.emc.pin import PINS
from powerlab.modes.knobs.gpu_devfreq import GpuDevfreq
from powerlab.nvml_library import Library
from powerlab.sysroot import Sysroot
from powerlab.throttling.card_clocks import card_clocks
from powerlab.throttling.reading import first_line, integer
from powerlab.throttling.requested_clock import actual_khz, parse_processors
from powerlab.throttling.shown_clock import ShownClock

_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
_DEVFREQ = "/sys/class/devfreq"


def shown_clocks(sysroot: Sysroot, cards: tuple[Library, range] | None) -> tuple[ShownClock, ...]:
    """Return all clocks that can be read now; a virtual machine often shows none."""
    return (*_cpu(sysroot), *_devfreq(sysroot), *_memory(sysroot), *card_clocks(sysroot, cards))


def _cpu(sysroot: Sysroot) -> Iterator[ShownClock]:
    """Yield the clock of each cluster; cores that each have their own, and are set alike, are one with a mean clock."""
    clusters: dict[tuple[object, ...], list[tuple[frozenset[int], str]]] = {}
    for path in sorted(sysroot.glob(_POLICIES), key=lambda path: int(re.sub(r"\D", "", path) or 0)):
        processors = parse_processors(first_line(sysroot, f"{path}/affected_cpus"))
        if processors and actual_khz(sysroot, path):
            limits = [integer(sysroot, f"{path}/{file}") for file in ("scaling_max_freq", "cpuinfo_max_freq")]
            alone = "" if len(processors) == 1 else path
            kind = (limits[0], limits[1], first_line(sysroot, f"{path}/scaling_governor"), alone)
            clusters.setdefault(kind, []).append((processors, path))
    for (limit_khz, _, governor, _), policies in clusters.items():
        yield ShownClock(
            name=f"CPU {_span(frozenset().union(*(processors for processors, _ in policies)))}",
            read_mhz=partial(_mean_mhz, sysroot, tuple(path for _, path in policies)),
            limit_mhz=limit_khz / 1e3 if isinstance(limit_khz, int) else None,
            governor=str(governor),
        )


def _mean_mhz(sysroot: Sysroot, policies: tuple[str, ...]) -> float | None:
    khz = [clock for path in policies if (clock := actual_khz(sysroot, path))]
    return statistics.fmean(khz) / 1e3 if khz else None


def _span(numbers: frozenset[int]) -> str:
    """Return numbers with neighbours joined: ``0,3-5``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in found)


def _devfreq(sysroot: Sysroot) -> Iterator[ShownClock]:
    for setting in GpuDevfreq().read(sysroot):
        device, _, part = setting.target.rpartition(".")
        if part == "max_hz":
            limit_hz = float(setting.value) if setting.value.isdecimal() else None
            yield ShownClock(
                name="GPU",
                read_mhz=partial(_rate_mhz, sysroot, f"{_DEVFREQ}/{device}/cur_freq"),
                limit_mhz=limit_hz / 1e6 if limit_hz else None,
                governor=first_line(sysroot, f"{_DEVFREQ}/{device}/governor"),
            )


def _memory(sysroot: Sysroot) -> Iterator[ShownClock]:
    rate = next((pin.rate for pin in PINS if integer(sysroot, pin.rate)), None)
    if rate is not None:
        yield ShownClock(name="memory", read_mhz=partial(_rate_mhz, sysroot, rate))


def _rate_mhz(sysroot: Sysroot, path: str) -> float | None:
    hz = integer(sysroot, path)
    return hz / 1e6 if hz else None
