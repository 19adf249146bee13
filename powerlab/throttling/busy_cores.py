"""Which processors were busy between two looks at ``/proc/stat`` (Documentation/filesystems/proc)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from powerlab.sysroot import Sysroot

BUSY_SHARE = 0.9
"""A processor that idles more than a tenth of the time may rightly be clocked down by its governor."""
_LINE = re.compile(r"cpu([0-9]{1,6})((?: [0-9]{1,19})+)")
_IDLE, _IOWAIT, _STEAL, _GUEST = 3, 4, 7, 8

Ticks = Mapping[int, tuple[int, int]]
"""By processor: clock ticks it was at work, and all its ticks."""


def parse_ticks(text: str) -> dict[int, tuple[int, int]]:
    """Return each processor's ticks out of the text of ``/proc/stat``; lines of another form are left out.

    Time that a hypervisor gave to others is no work. Guests' time is within that of user, so it is not added again.
    """
    found = {}
    for line in text.splitlines():
        matched = _LINE.fullmatch(line.rstrip())
        if matched is None:
            continue
        ticks = [int(field) for field in matched[2].split()][:_GUEST]
        away = sum(ticks[index] for index in (_IDLE, _IOWAIT, _STEAL) if index < len(ticks))
        found[int(matched[1])] = (sum(ticks) - away, sum(ticks))
    return found


def read_ticks(sysroot: Sysroot) -> dict[int, tuple[int, int]]:
    """Return the ticks now; nothing where the kernel shows none."""
    try:
        return parse_ticks(sysroot.read("/proc/stat"))
    except OSError:
        return {}


def busy_between(before: Ticks, after: Ticks) -> frozenset[int]:
    """Return the processors that were at work for nearly all of the time between two looks."""
    busy = set()
    for number, (work, total) in after.items():
        if number in before:
            passed = total - before[number][1]
            if passed > 0 and work - before[number][0] >= BUSY_SHARE * passed:
                busy.add(number)
    return frozenset(busy)
