"""How the points of one work stand in one goal: which leads, and what each of the others may still gain on it.

Everything is about the difference ``d`` of a point's logarithm to the leader's, whose variance takes into account what
the two have in common. From it follow

- the chance that the point beats the leader by more than ε: ``P(d > ln(1 + ε))``;
- what one more run of the point may gain: the expected excess over that bound (expected improvement: Jones, Schonlau &
  Welch, Journal of Global Optimization, 1998), of the mean of ``d`` as it will be *after* the run (knowledge gradient:
  Frazier, Powell & Dayanik, SIAM Journal on Control and Optimization, 2008), so that a noisy repeat of a known point is
  worth less than a first run of an unknown one. A run of the leader changes the difference to every point, and is
  worth the most that this may gain at any of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.search.prior import LATENCY, POWER, THROUGHPUT
from powerlab.search.surface import Surface

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

SIGNS: Mapping[str, Mapping[str, float]] = {
    "latency": {LATENCY: -1.0},
    "throughput": {THROUGHPUT: 1.0},
    "efficiency": {THROUGHPUT: 1.0, POWER: -1.0},
}
"""The logarithm of each goal as a signed sum of those of quantities; more is better."""
_LEAST_SD = 1e-9
_LEAST_VARIANCE = _LEAST_SD**2
_erf = np.vectorize(math.erf, otypes=[np.float64])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contest:
    """The points of one work, compared by one goal.

    Attributes:
        goal: a key of :data:`SIGNS`.
        places: the work's points.
        leader: the best of those that were measured, by what the model makes of their runs.
        chance: by place, how likely it beats the leader by more than ε; 0 for the leader.
        gain: by place, what one more run of it is expected to gain, as a share of the leader's figure.
    """

    goal: str
    places: Places
    leader: int
    chance: Numbers
    gain: Numbers


def contest(goal: str, places: Places, measured: Places, surfaces: Mapping[str, Surface], epsilon: float) -> Contest:
    """Compare the points of a work.

    Args:
        goal: a key of :data:`SIGNS`.
        places: the work's points.
        measured: those of them with a figure, at least one.
        surfaces: by quantity.
        epsilon: what counts as better, as a share.
    """
    signs = SIGNS[goal]
    leader = leader_of(goal, measured, surfaces)
    seen = {name: surfaces[name].against(leader) for name in signs}
    mean = sum((sign * (seen[name].mean - seen[name].mean[leader]) for name, sign in signs.items()), np.zeros(1))
    variance = sum((one.variance for one in seen.values()), np.zeros(1))[places]
    shared = sum((one.covariance for one in seen.values()), np.zeros(1))[places]
    of_leader = sum(float(one.variance[leader]) for one in seen.values())
    noise = sum(one.noise for one in seen.values())
    # A run moves the mean of a difference by its covariance with what is run, over the deviation of what it measures.
    beyond = (mean - math.log1p(epsilon))[places]
    others = places != leader
    gain = _excess(beyond, np.abs(variance - shared) / np.sqrt(variance + noise))
    leader_gain = _excess(beyond, np.abs(of_leader - shared) / math.sqrt(of_leader + noise))
    spread = np.sqrt(np.maximum(variance + of_leader - 2 * shared, _LEAST_VARIANCE))
    return Contest(
        goal=goal,
        places=places,
        leader=leader,
        chance=others * _below(beyond / spread),
        gain=np.where(others, gain, np.max(leader_gain * others)),
    )


def promise(goal: str, surfaces: Mapping[str, Surface]) -> Numbers:
    """Return the logarithm of a goal at every point as the model expects it."""
    return sum((sign * surfaces[name].mean for name, sign in SIGNS[goal].items()), np.zeros(1))


def leader_of(goal: str, measured: Places, surfaces: Mapping[str, Surface]) -> int:
    """Return the best of the measured points, by what the model makes of their runs."""
    return int(measured[np.argmax(promise(goal, surfaces)[measured])])


def _excess(beyond: Numbers, spread: Numbers) -> Numbers:
    """Return how much a normal figure of this mean and standard deviation is expected to be above 0."""
    spread = np.maximum(spread, _LEAST_SD)
    return np.asarray(beyond * _below(beyond / spread) + spread * _density(beyond / spread), dtype=np.float64)


def _below(z: Numbers) -> Numbers:
    """Return the standard normal distribution function."""
    return np.asarray(0.5 * (1 + _erf(z / math.sqrt(2))), dtype=np.float64)


def _density(z: Numbers) -> Numbers:
    return np.asarray(np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi), dtype=np.float64)
