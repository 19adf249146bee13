"""State of the connection: whether the server responds, when it last did, and until when it asked for silence."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import urllib3

from powerlab.protocol.retry_after import retry_after_s
from powerlab_agent.retry import LONGEST_ASKED_S

_TOO_MANY = 429


@dataclass(slots=True)
class Contact:
    """The agent's contact with its server.

    Attributes:
        answered_at_s: when the server last answered, in seconds since 1970; None until it does.
        reachable: whether it answered the last time it was asked.
        not_before_s: when it may be asked again, in seconds of the monotonic clock.
    """

    answered_at_s: float | None = None
    reachable: bool = False
    not_before_s: float = 0.0

    def rest_s(self) -> float:
        """Return for how many seconds the server still wants to be left alone."""
        return max(0.0, self.not_before_s - time.monotonic())


class WatchedPool(urllib3.PoolManager):
    """Connections whose answers are noted; one that says "later" (5xx) is none."""

    def __init__(self, contact: Contact, **options: Any) -> None:
        super().__init__(**options)
        self._contact = contact

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Do as the base class does."""
        try:
            answer = super().urlopen(method, url, redirect, **options)
        except urllib3.exceptions.HTTPError:
            self._contact.reachable = False
            raise
        self._contact.reachable = answer.status < 500
        if self._contact.reachable:
            self._contact.answered_at_s = time.time()
        if answer.status >= 500 or answer.status == _TOO_MANY:
            asked_s = min(retry_after_s(answer.headers) or 0.0, LONGEST_ASKED_S)
            self._contact.not_before_s = max(self._contact.not_before_s, time.monotonic() + asked_s)
        return answer
