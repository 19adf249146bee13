"""Retries of requests that may safely be sent twice."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random, SystemRandom
from typing import TypeVar

from powerlab.client.errors import ServerAwayError

T = TypeVar("T")
TRIES = 4
FIRST_S = 0.2
LONGEST_S = 30.0
"""A server that asks for a longer rest is not waited for."""


def patiently(ask: Callable[[], T], sleep: Callable[[float], None] = time.sleep, random: Random | None = None) -> T:
    """Ask until there is an answer, a few times, with waits of full jitter that double (or as the server asks).

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/

    Raises:
        ServerAwayError: the server stays away, or asks for too long a rest.
    """
    dice = random or SystemRandom()
    for failures in range(TRIES):
        try:
            return ask()
        except ServerAwayError as error:
            after_s = error.after_s or 0.0
            if failures == TRIES - 1 or after_s > LONGEST_S:
                raise
            sleep(after_s + dice.uniform(0.0, FIRST_S * 2.0**failures))
    raise AssertionError("the last try returns or raises")
