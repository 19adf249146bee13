"""Rails read one by one for people to watch.

A rail that counts energy shows the mean power between two readings, any other one what it says at that moment.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import ExitStack

from powerlab.domain.power import Rail, RailQuantity
from powerlab.power.base import Channel, FileChannel, PolledChannel, Stamped
from powerlab.power.sources.scan import parse_integer
from powerlab.privileged.client import is_there
from powerlab.privileged.reading import is_denied, open_denied
from powerlab.sysroot import Sysroot

_EARLY = 0.9
"""A sensor is asked again once this share of its update period is over: the readings do not come evenly."""
_STALE_PERIODS, _STALE_NS = 5, 5_000_000_000
"""A sensor that sends by itself and has sent nothing for so long says nothing of the power now."""
_TEXT_BYTES = 64


class LiveRail:
    """One rail, open for reading until the stack it was opened on is closed."""

    def __init__(self, sysroot: Sysroot, channel: Channel, stack: ExitStack) -> None:
        """Open the rail.

        Raises:
            OSError: it cannot be opened.
        """
        self.rail: Rail = channel.rail
        self._read = _file_reader(sysroot, channel, stack) if isinstance(channel, FileChannel) else _polled(channel)
        self._wraps_at_j = (
            channel.wraps_at * channel.scale if isinstance(channel, FileChannel) and channel.wraps_at else None
        )
        self._last: tuple[int, float] | None = None
        self._power_w: float | None = None

    def power_w(self) -> float | None:
        """Return the power in W; None where it cannot be read, and before a counter was read twice."""
        now_ns = time.monotonic_ns()
        least_ns = _EARLY * self.rail.update_period_s * 1e9
        if self._last is not None and now_ns - self._last[0] < least_ns:
            return self._power_w
        try:
            stamped = self._read()
        except (OSError, ValueError):
            self._last, self._power_w = None, None
            return None
        if stamped is not None and (self._last is None or stamped.time_ns > self._last[0]):
            self._take(stamped)
        elif self._last is not None and now_ns - self._last[0] > _STALE_NS + _STALE_PERIODS * least_ns:
            self._power_w = None
        return self._power_w

    def _take(self, stamped: Stamped) -> None:
        value, before = stamped.value, self._last
        if not math.isfinite(value):
            self._last, self._power_w = None, None
            return
        if self.rail.quantity is RailQuantity.ENERGY:
            self._power_w = None if before is None else self._mean_w(before, stamped)
        else:
            self._power_w = value
        self._last = stamped.time_ns, value

    def _mean_w(self, before: tuple[int, float], now: Stamped) -> float | None:
        """Return the mean power between two readings of the counter; None where it was set back."""
        time_ns, energy_j = before
        gained_j = now.value - energy_j
        if gained_j < 0 and self._wraps_at_j is not None:
            gained_j += self._wraps_at_j
        passed_s = (now.time_ns - time_ns) * 1e-9
        return gained_j / passed_s if gained_j >= 0 else None


def _file_reader(sysroot: Sysroot, channel: FileChannel, stack: ExitStack) -> Callable[[], Stamped]:
    files = [_opened(sysroot, path, stack) for path in channel.paths]

    def read() -> Stamped:
        before_ns = time.monotonic_ns()
        texts = [os.pread(file, _TEXT_BYTES, 0).decode("ascii", "replace") for file in files]
        time_ns = (before_ns + time.monotonic_ns()) // 2
        raw = math.prod(parse_integer(text.partition("\n")[0]) for text in texts)
        if raw == channel.invalid:
            raise ValueError("the driver says that it does not know")
        return Stamped(time_ns, raw * channel.scale)

    return read


def _opened(sysroot: Sysroot, path: str, stack: ExitStack) -> int:
    """Open a file, through the privileged helper where this user may not."""
    if is_denied(sysroot, path) and is_there(sysroot):
        descriptor = open_denied(sysroot, path)
    else:
        descriptor = os.open(sysroot.path(path), os.O_RDONLY | os.O_CLOEXEC)
    stack.callback(os.close, descriptor)
    return descriptor


def _polled(channel: PolledChannel) -> Callable[[], Stamped | None]:
    def read() -> Stamped | None:
        value = channel.read()
        if isinstance(value, tuple):
            return value[-1] if value else None
        return value if isinstance(value, Stamped) else Stamped(time.monotonic_ns(), value)

    return read
