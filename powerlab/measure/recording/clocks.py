"""Offsets between the kernel's clocks (clock_gettime(2)).

CLOCK_MONOTONIC stands still while the machine is suspended, and CLOCK_BOOTTIME goes on. Neither is ever set, and
CLOCK_REALTIME is; slewing moves all three alike.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

_SOON_S = 0.001
_TRIES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How far the clocks were apart at one moment.

    Attributes:
        suspended_s: how long the machine has been suspended since it was started.
        wall_s: the wall clock's time when the machine was started.
    """

    suspended_s: float
    wall_s: float

    def suspended_until_s(self, later: Clocks) -> float:
        """Return for how long the machine was suspended between two moments."""
        return later.suspended_s - self.suspended_s

    def jumped_until_s(self, later: Clocks) -> float:
        """Return by how much the wall clock was set between two moments; a suspension is no jump."""
        return later.wall_s - self.wall_s


def read_clocks() -> Clocks:
    """Read all three clocks at one moment, as far as a busy machine allows: again, where it took long to read them."""
    for _ in range(_TRIES):
        monotonic_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        boot_s, wall_s = time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_REALTIME)
        if time.clock_gettime(time.CLOCK_MONOTONIC) - monotonic_s < _SOON_S:
            break
    return Clocks(suspended_s=boot_s - monotonic_s, wall_s=wall_s - boot_s)


def suspended_since_boot_s() -> float:
    """Return how long the machine has been suspended since it was started, in s."""
    return read_clocks().suspended_s
