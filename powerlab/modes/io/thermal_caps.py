"""Thermal caps on limits that knobs set: the kernel lowers clocks by an upper limit of its own.

The files of the limits (``scaling_max_freq``, devfreq's ``max_freq``, and the lower ones) show the lower of what was
asked for and what heat leaves (kernel, driver-api/thermal/cpu-cooling-api, and the frequency requests in cpufreq.c and
devfreq.c). So a limit that reads too low while a cooling device is at work is no sign that somebody changed it, and
what it was set to cannot be recorded then.
"""

from __future__ import annotations

import re

from powerlab.domain.mode import Setting
from powerlab.sysroot import Sysroot
from powerlab.throttling.thermal import slows

_LIMIT = re.compile(r".*\.(max|min)_k?hz")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)")


def holds(sysroot: Sysroot) -> bool:
    """Say whether the kernel holds a clock down because of heat at this moment.

    Not by powerclamp, which makes cores idle and leaves the limits alone; it says -1 while it does nothing.
    """
    for path in sysroot.glob("/sys/class/thermal/cooling_device*"):
        kind, state = _value(sysroot, f"{path}/type"), _value(sysroot, f"{path}/cur_state")
        if slows(kind) and "powerclamp" not in kind and state.isdecimal() and int(state) > 0:
            return True
    return False


def explains(sysroot: Sysroot, setting: Setting, found: str) -> bool:
    """Say whether heat explains that a setting reads otherwise: it is a clock's limit, it is lower, and heat holds."""
    if _LIMIT.fullmatch(setting.target) and setting.value.isdecimal() and found.isdecimal():
        return int(found) < int(setting.value) and holds(sysroot)
    wanted, now = _RANGE.fullmatch(setting.value), _RANGE.fullmatch(found)
    if wanted is None or now is None:
        return False
    return all(int(now[end]) <= int(wanted[end]) for end in (1, 2)) and holds(sysroot)


def _value(sysroot: Sysroot, path: str) -> str:
    try:
        return sysroot.read(path)
    except OSError:
        return ""
