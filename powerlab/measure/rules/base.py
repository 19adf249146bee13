"""Shared by the rules: their interface, and the two limits of a share of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Trace
from powerlab.domain.run import Verdict
from powerlab.domain.statistics import NORMAL_95
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.evidence import Evidence

Judgement = tuple[Verdict, str]
Rule = Callable[[Evidence], Iterator[Judgement]]

SHARE_FLAGGED, SHARE_VOID = 0.02, 0.10
"""How much of a window may be unknown: 2 % of its time is 2 % of its energy, more than most sensors are off by."""


def by_share(share: float) -> Verdict:
    """Return the verdict on a window of which so much is unknown."""
    if share > SHARE_VOID:
        return Verdict.VOID
    return Verdict.FLAGGED if share > SHARE_FLAGGED else Verdict.VALID


def inside(trace: Trace, window_ns: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which samples lie in the window, both ends included: shape (n,)."""
    found: NDArray[np.bool_] = (trace.time_ns >= window_ns[0]) & (trace.time_ns <= window_ns[1])
    return found


def unshared_half_width_w(energy: TotalEnergy) -> float:
    """Return the half-width of a mean power's 95 % interval, without the gain errors that two readings share."""
    return NORMAL_95 * energy.independent_j / energy.duration_s
