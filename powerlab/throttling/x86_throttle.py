"""The kernel's count of thermal throttling events of x86 processors.

Source: Documentation/ABI/testing/sysfs-devices-system-cpu, ``thermal_throttle``. Each processor has a counter of its
core and one of its package; all processors of a package show nearly the same count of the package.
"""

from __future__ import annotations

import re

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching, WatchProbe
from powerlab.throttling.reading import counted, integer

_FOLDERS = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle"
_KINDS = ("core_throttle_count", "package_throttle_count")
_TIMES = ("core_throttle_total_time_ms", "package_throttle_total_time_ms")
_CPU = re.compile(r"/cpu([0-9]+)/")

Counts = dict[str, int]
"""Path of a file and the number in it."""


def _read(sysroot: Sysroot) -> Counts:
    found = {}
    for folder in sysroot.glob(_FOLDERS):
        for name in (*_KINDS, *_TIMES):
            value = integer(sysroot, f"{folder}/{name}")
            if value is not None:
                found[f"{folder}/{name}"] = value
    return found


def describe(start: Counts, end: Counts) -> tuple[str, ...]:
    """Put the difference of two readings into sentences, one for cores and one for packages."""
    grown = {path: count - start[path] for path, count in end.items() if path in start and count > start[path]}
    sentences = []
    for kind, time_file, what in zip(_KINDS, _TIMES, ("core", "package"), strict=True):
        counts = {path: count for path, count in grown.items() if path.endswith(f"/{kind}")}
        if not counts:
            continue
        times_ms = [count for path, count in grown.items() if path.endswith(f"/{time_file}")]
        lasting = f", for {max(times_ms) / 1000:.2f} s" if times_ms else ""
        most = max(counts, key=lambda path: counts[path])
        cpu = _CPU.search(most)
        where = f"the {what} of cpu{cpu[1] if cpu else '?'}"
        others = (
            f" (and on {counted(len(counts) - 1, 'other processor')})" if len(counts) > 1 and what == "core" else ""
        )
        sentences.append(f"the processor slowed itself down because of heat: {where} {counted(counts[most], 'time')}")
        sentences[-1] += lasting + others
    return tuple(sentences)


class _Watching:
    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot, self._start = sysroot, _read(sysroot)

    def sample(self) -> None:
        """Do nothing: the kernel counts."""

    def finish(self) -> tuple[str, ...]:
        return describe(self._start, _read(self._sysroot))


class X86Throttle:
    """Watches the thermal throttle counters of x86 processors."""

    name = "x86_throttle"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say whether the kernel counts."""
        processors = len({path.rsplit("/", 1)[0] for path in _read(sysroot)})
        if processors:
            state, detail = Availability.AVAILABLE, f"heat is counted on {counted(processors, 'processor')}"
        else:
            state = Availability.ABSENT
            detail = "no thermal throttle counters (Intel processors have them, virtual machines do not)"
        return WatchProbe(watch=self.name, availability=state, detail=detail)

    def start(self, sysroot: Sysroot) -> Watching:
        """Note the counts."""
        return _Watching(sysroot)
