"""CPU clocks below what governor and limits request, while the cores are busy.

A clock that was looked at counts only if one of the policy's processors was busy all around the look: since two looks
before it, as a governor needs some time to climb, and until the look after it, as load may just have ended.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching, WatchProbe
from powerlab.throttling.busy_cores import busy_between, read_ticks
from powerlab.throttling.reading import counted
from powerlab.throttling.requested_clock import RequestedClock, actual_khz, requested_clocks

_TOLERANCE = 0.05
"""A clock this far below what is asked for is rounding, spread spectrum or the moment of the look."""
_LOW_SHARE = 0.1
_LEAST_LOOKS, _LEAST_LOW_LOOKS = 5, 3


@dataclass(slots=True)
class _Policy:
    requested: RequestedClock
    looks: int = 0
    last_khz: int | None = None
    low_khz: list[int] = field(default_factory=list)

    @property
    def low_share(self) -> float:
        enough = self.looks >= _LEAST_LOOKS and len(self.low_khz) >= _LEAST_LOW_LOOKS
        return len(self.low_khz) / self.looks if enough else 0.0

    def count_last(self) -> None:
        """Count the clock of the last look, as the load has gone on since."""
        if self.last_khz is not None:
            self.looks += 1
            if self.last_khz < (1 - _TOLERANCE) * self.requested.khz:
                self.low_khz.append(self.last_khz)

    @property
    def low_ratio(self) -> float:
        """How the low clocks stand to what was asked for; the smaller, the worse."""
        return statistics.median(self.low_khz) / self.requested.khz


class _Watching:
    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot = sysroot
        self._policies = [_Policy(requested) for requested in requested_clocks(sysroot)]
        self._ticks = read_ticks(sysroot) if self._policies else {}
        self._busy_once: frozenset[int] = frozenset()
        """Busy between the last two looks."""
        self._busy_twice: frozenset[int] = frozenset()
        """Busy between the last three looks."""

    def sample(self) -> None:
        if not self._policies:
            return
        ticks = read_ticks(self._sysroot)
        busy = busy_between(self._ticks, ticks)
        for policy in self._policies:
            if policy.requested.processors & busy & self._busy_twice:
                policy.count_last()
            busy_now = policy.requested.processors & busy & self._busy_once
            policy.last_khz = actual_khz(self._sysroot, policy.requested.path) if busy_now else None
        self._ticks, self._busy_once, self._busy_twice = ticks, busy, busy & self._busy_once

    def finish(self) -> tuple[str, ...]:
        slow = [policy for policy in self._policies if policy.low_share >= _LOW_SHARE]
        if not slow:
            return ()
        worst = min(slow, key=lambda policy: policy.low_ratio)
        others = f" (and {counted(len(slow) - 1, 'other cluster')} likewise)" if len(slow) > 1 else ""
        low_ghz, requested_ghz = statistics.median(worst.low_khz) / 1e6, worst.requested.khz / 1e6
        return (
            f"the CPU clocks of {worst.requested.name} were too low in {worst.low_share:.0%} of the looks at busy "
            "cores: "
            f"{low_ghz:.2f} GHz where {requested_ghz:.2f} GHz was requested{others}",
        )


class CpuClocks:
    """Watches cpufreq."""

    name = "cpu_clocks"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say of how many policies it is known what they must reach."""
        requested = requested_clocks(sysroot)
        if not requested:
            state, detail = Availability.ABSENT, "the kernel says of no CPU clock both what it is and what it must be"
        elif not read_ticks(sysroot):
            state, detail = Availability.ABSENT, "the kernel does not say which cores are busy"
        else:
            state = Availability.AVAILABLE
            shown = sorted({f"{policy.khz / 1e6:.2f}" for policy in requested})
            detail = f"{counted(len(requested), 'cluster')}, to reach {' or '.join(shown)} GHz under load"
        return WatchProbe(watch=self.name, availability=state, detail=detail)

    def start(self, sysroot: Sysroot) -> Watching:
        """Note what is asked for now, before heat can lower the limits."""
        return _Watching(sysroot)
