"""Offset of the device's wall clock from the server's, measured as in NTP (RFC 5905, section 8).

What is kept is the server's time minus CLOCK_BOOTTIME, which nobody sets and no suspension stops. So the offset of the
wall clock is right also after the wall clock was set, while the server is away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from powerlab.domain.device_state import ClockOffset
from powerlab.protocol.messages import ServerTime
from powerlab_agent.client import RefusedError, ServerUnreachableError

_log = logging.getLogger("powerlab.agent")
EXCHANGES = 8
REFRESH_S = 600.0


def boot_ns() -> int:
    """Return CLOCK_BOOTTIME."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What one question told: the server's time minus the boot clock, the round trip, and when it was asked."""

    server_minus_boot_ns: int
    round_trip_ns: int
    asked_ns: int


class ServerClock:
    """Knows the server's time."""

    def __init__(
        self,
        ask: Callable[[], ServerTime],
        boot: Callable[[], int] = boot_ns,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            ask: asks the server.
            boot: reads CLOCK_BOOTTIME, in ns.
            wall: reads the wall clock, in ns since 1970.
        """
        self._ask, self._boot, self._wall = ask, boot, wall
        self._best: _Exchange | None = None
        self._next_ns = boot()

    def refresh_if_due(self) -> None:
        """Ask the server a few times and keep the answer with the shortest round trip, every ten minutes at most."""
        if self._boot() < self._next_ns:
            return
        self._next_ns = self._boot() + int(REFRESH_S * 1e9)
        try:
            self._best = min((self._exchange() for _ in range(EXCHANGES)), key=lambda one: one.round_trip_ns)
        except (ServerUnreachableError, RefusedError) as error:
            _log.warning("how this device's clock stands to the server's is asked again later: %s", error)

    def offset(self) -> ClockOffset | None:
        """Return how the wall clock stands to the server's now; None where the server never said."""
        best = self._best
        if best is None:
            return None
        now_ns = self._boot()
        return ClockOffset(
            offset_s=(best.server_minus_boot_ns + now_ns - self._wall()) / 1e9,
            uncertainty_s=best.round_trip_ns / 2e9,
            age_s=(now_ns - best.asked_ns) / 1e9,
        )

    def _exchange(self) -> _Exchange:
        asked_ns = self._boot()
        said = self._ask()
        heard_ns = self._boot()
        return _Exchange(
            server_minus_boot_ns=((said.received_ns - asked_ns) + (said.sent_ns - heard_ns)) // 2,
            round_trip_ns=max(0, (heard_ns - asked_ns) - (said.sent_ns - said.received_ns)),
            asked_ns=asked_ns,
        )
