"""Whether the server answers, and when it last did."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import urllib3


@dataclass(slots=True)
class Contact:
    """The agent's contact with its server.

    Attributes:
        answered_at_s: when the server last answered, in seconds since 1970; None until it does.
        reachable: whether it answered the last time it was asked.
    """

    answered_at_s: float | None = None
    reachable: bool = False


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
        return answer
