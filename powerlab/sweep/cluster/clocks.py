"""The clock of another device beside this one's, as NTP compares them (RFC 5905, section 8): who asks notes when."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from powerlab.domain.power import Trace
from powerlab.sweep.cluster.link import Link, question

_QUESTIONS = 16
"""The quickest answer of these says most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How another clock stands to this one.

    Attributes:
        at_ns: when, on this one.
        offset_ns: what is added to the other one's times.
        error_s: by how much that may be wrong: half the time between question and answer.
    """

    at_ns: int
    offset_ns: int
    error_s: float


def compare(link: Link) -> Comparison:
    """Ask for the other clock; raises LinkError."""
    middle_ns, offset_ns, length_ns = min(
        (question(link, time.monotonic_ns) for _ in range(_QUESTIONS)), key=lambda one: one[2]
    )
    return Comparison(at_ns=middle_ns, offset_ns=offset_ns, error_s=length_ns / 2e9)


def aligned(trace: Trace, before: Comparison, after: Comparison) -> Trace:
    """Return a trace on this device's clock, the offset growing evenly from one comparison to the next."""
    at_ns = trace.time_ns + before.offset_ns - before.at_ns
    drift = (after.offset_ns - before.offset_ns) / max(1, after.at_ns - before.at_ns)
    moved = trace.time_ns + before.offset_ns + np.round(at_ns * drift).astype(np.int64)
    return replace(trace, time_ns=moved)
