"""Whether the machine slept: CLOCK_MONOTONIC stands still then, and CLOCK_BOOTTIME goes on (clock_gettime(2))."""

from __future__ import annotations

import time


def suspended_since_boot_s() -> float:
    """Return how long the machine has been suspended since it was started, in s."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)
