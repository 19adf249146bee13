"""What is expected of time and power before anything is measured.

Slopes on logarithmic scales, each with how far it may be off (one standard deviation): a query takes about as many
times longer as it has images, threads shorten it less than in proportion (Amdahl, 1967), clocks nearly in proportion;
power grows with busy cores and with the clock. They are priors: a dozen runs outweigh them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.sweep import SEARCHED

LATENCY, THROUGHPUT, POWER = SEARCHED

_Slope = tuple[float, float]
_TIME: dict[str, _Slope] = {
    "capacity": (-0.6, 0.3),
    "threads": (0.0, 0.15),
    "batch": (0.95, 0.2),
    "slices": (0.0, 0.2),
    "queues": (0.0, 0.2),
    "spin": (0.0, 0.05),
    "cpu-max": (-0.7, 0.3),
    "cpu-min": (0.0, 0.1),
    "emc-max": (-0.1, 0.15),
    "gpu-max": (0.0, 0.05),
    "gpu-lock": (0.0, 0.05),
    "gpu-limit": (0.0, 0.05),
    "cores": (0.0, 0.05),
    "cpu-quota": (0.0, 0.2),
    "package-limit": (-0.1, 0.2),
}
_POWER: dict[str, _Slope] = {
    "capacity": (0.3, 0.25),
    "threads": (0.0, 0.15),
    "batch": (0.0, 0.05),
    "slices": (0.0, 0.1),
    "queues": (0.0, 0.1),
    "spin": (0.0, 0.05),
    "cpu-max": (0.4, 0.4),
    "cpu-min": (0.1, 0.2),
    "emc-max": (0.05, 0.1),
    "gpu-max": (0.03, 0.1),
    "gpu-lock": (0.1, 0.2),
    "gpu-limit": (0.03, 0.1),
    "cores": (0.1, 0.15),
    "cpu-quota": (0.0, 0.2),
    "package-limit": (0.1, 0.2),
}
_TIME_ON_GPU: dict[str, _Slope] = {
    **_TIME,
    **dict.fromkeys(("capacity", "cpu-max"), (-0.1, 0.15)),
    **dict.fromkeys(("gpu-max", "gpu-lock", "intel-gpu-max"), (-0.5, 0.3)),
    **dict.fromkeys(("gpu-limit", "amd-gpu-limit", "intel-gpu-limit"), (-0.2, 0.2)),
    **dict.fromkeys(("gpu-memory-lock", "emc-max"), (-0.2, 0.2)),
}
_POWER_ON_GPU: dict[str, _Slope] = {
    **_POWER,
    **dict.fromkeys(("capacity", "cpu-max"), (0.05, 0.1)),
    **dict.fromkeys(("gpu-max", "gpu-lock", "intel-gpu-max"), (0.5, 0.4)),
    **dict.fromkeys(("gpu-limit", "amd-gpu-limit", "intel-gpu-limit"), (0.4, 0.4)),
    **dict.fromkeys(("gpu-memory-lock", "emc-max"), (0.1, 0.1)),
}
"""Where a graphics processor computes, its clocks and limits decide, and the cores only hand it work."""
_UNKNOWN: _Slope = (0.0, 0.3)
BEND = 0.1
"""Standard deviation of the coefficient of a product of two numbers: threads pay less at a high clock, where each costs
more power. That of a number with itself changes its slope by twice as much over one octave."""
_CLOCKS = ("cpu-max", "gpu-max", "gpu-lock", "intel-gpu-max")
_BEND_OF_POWER: _Slope = (0.15, 0.15)
"""Of a clock with itself. Power is a part that stays and one that grows with V²f, about as f²: its slope rises from 0
towards 2 or 3: by 2² ln(2) / 4 = 0.7 at most over an octave. Time, a sum of parts that grow as 1/f or not at all, bends
by a fourth of that."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prior:
    """A Gaussian prior of a linear model's coefficients: natural logarithm of the quantity per octave."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def prior_of(quantity: str, names: Sequence[str], on_gpu: bool = False) -> Prior:
    """Return the prior for the columns of :func:`basis`; ``on_gpu`` where a graphics processor computes some points."""
    of_power, of_time = (_POWER_ON_GPU, _TIME_ON_GPU) if on_gpu else (_POWER, _TIME)
    table = of_power if quantity == POWER else of_time
    slopes = [table.get(name, _UNKNOWN) for name in names]
    if quantity == THROUGHPUT:
        slopes = [(float(name == "batch") - mean, off) for name, (mean, off) in zip(names, slopes, strict=True)]
    ln2 = np.log(2.0)
    of_clocks = {at for at, name in enumerate(names) if quantity == POWER and name in _CLOCKS}
    pairs = zip(*np.triu_indices(len(names)), strict=True)
    bends = [_BEND_OF_POWER if one == other and one in of_clocks else (0.0, BEND) for one, other in pairs]
    both = np.array([*slopes, *bends], dtype=np.float64).reshape(-1, 2) * ln2
    return Prior(mean=both[:, 0], deviation=both[:, 1])


def basis(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points x (numbers, their products): the columns of the linear model."""
    first, second = np.triu_indices(numbers.shape[1])
    return np.hstack([numbers, numbers[:, first] * numbers[:, second]])
