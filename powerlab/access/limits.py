"""Rate limits: one token bucket per key.

Each server process counts its own. A bucket that was left alone long enough is full again and need not be kept, so that
memory stays bounded.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from powerlab.domain.errors import PowerlabError

_MOST_BUCKETS = 10_000


class TooManyRequestsError(PowerlabError):
    """Somebody asks too often (429).

    Attributes:
        retry_after_s: whole seconds after which there is a try again.
    """

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(f"too many requests in a short time; try again in {retry_after_s} s.")
        self.retry_after_s = retry_after_s


@dataclass(slots=True)
class Limit:
    """Tries for keys such as an address or the name of a token; may be used by several threads.

    Attributes:
        burst: how many tries a key has at first, and at most.
        per_s: how many it gets back each second.
        clock: tells seconds; tests bring their own.
    """

    burst: float
    per_s: float
    clock: Callable[[], float] = time.monotonic
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, key: str) -> None:
        """Raise TooManyRequestsError where the key has no try left."""
        with self._lock:
            self._refuse_if_empty(self._now_left(key, self.clock()))

    def spend(self, key: str) -> None:
        """Take one of the key's tries; raises TooManyRequestsError where none is left."""
        with self._lock:
            now = self.clock()
            left = self._now_left(key, now)
            self._refuse_if_empty(left)
            self._left.pop(key, None)  # so that the order is that of the last use
            self._left[key] = (left - 1, now)
            if len(self._left) > _MOST_BUCKETS:
                del self._left[next(iter(self._left))]

    def _now_left(self, key: str, now: float) -> float:
        left, then = self._left.get(key, (self.burst, now))
        return min(self.burst, left + (now - then) * self.per_s)

    def _refuse_if_empty(self, left: float) -> None:
        if left < 1:
            raise TooManyRequestsError(math.ceil((1 - left) / self.per_s))


@dataclass(slots=True, kw_only=True)
class Limits:
    """What a server allows.

    Attributes:
        requests: of one token; an agent that uploads a long sweep stays far below.
        guesses: wrong tokens and wrong enrolment codes from one address.
    """

    requests: Limit = field(default_factory=lambda: Limit(burst=1000, per_s=100))
    guesses: Limit = field(default_factory=lambda: Limit(burst=20, per_s=0.2))
