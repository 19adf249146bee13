"""Loads whose energy is known in closed form: what a machine draws while it is idle, warms up and infers.

Times are in s from the moment recording begins, power in W, energy in J. Power is constant on every piece; on top come
a ramp and an exponential approach, which begin with the load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LONG_S = 1e4
"""Before the first piece's end and after the last one's start the power stays what it is there, for so long."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TrueLoad:
    """True power over time.

    Attributes:
        edges_s: where pieces begin and end, shape (n + 1,).
        levels_w: the power on each, shape (n,).
        begins_s: when ramp and approach begin.
        ramp_w_per_s: slope from then on.
        approach_w: how much the power rises from then on, in the end.
        approach_s: the time constant of that.
        window_s: the timed part, whose ends are those of inferences.
    """

    edges_s: Floats
    levels_w: Floats
    begins_s: float
    window_s: tuple[float, float]
    ramp_w_per_s: float = 0.0
    approach_w: float = 0.0
    approach_s: float = 1.0

    def watts(self, time_s: Any) -> Floats:
        """Return the power at these times."""
        t = np.asarray(time_s, dtype=float)
        piece = np.clip(np.searchsorted(self.edges_s, t, side="right") - 1, 0, self.levels_w.size - 1)
        since = np.maximum(t - self.begins_s, 0.0)
        rise = self.approach_w * -np.expm1(-since / self.approach_s)
        return np.asarray(self.levels_w[piece] + self.ramp_w_per_s * since + rise)

    def joules(self, time_s: Any) -> Floats:
        """Return the energy since the first edge."""
        t = np.asarray(time_s, dtype=float)
        done = np.concatenate(([0.0], np.cumsum(self.levels_w * np.diff(self.edges_s))))
        since = np.maximum(t - self.begins_s, 0.0)
        rise = self.approach_w * (since + self.approach_s * np.expm1(-since / self.approach_s))
        return np.asarray(np.interp(t, self.edges_s, done) + self.ramp_w_per_s * since**2 / 2 + rise)

    def energy_j(self, start_s: float, end_s: float) -> float:
        """Return the energy between two times."""
        return float(np.diff(self.joules([start_s, end_s]))[0])


SHAPES = ("steady", "ramp", "periodic", "bursts", "warm-up", "phase-change")


def draw_load(  # noqa: PLR0917 - two sources of chance, and what they make a load of
    what: np.random.Generator, when: np.random.Generator, shape: str, idle_w: float, window_s: float, margin_s: float
) -> TrueLoad:
    """Draw a load of a shape: idle for a margin, under load for a margin before the window, and a margin after it.

    What it is comes from one source of chance, and from another when its inferences begin and end: two runs of a point
    share the first.

    Inferences follow each other without a pause, as in single-stream; each has a busy part and a calmer one. How long
    one takes scatters by one to ten per cent, as latency does.
    """
    begins_s = margin_s
    busy_w = idle_w * what.uniform(1.5, 6.0)
    if shape in {"steady", "ramp", "warm-up"}:
        edges = np.array([-LONG_S, begins_s, LONG_S])
        levels = np.array([idle_w, busy_w])
        starts_s = begins_s + margin_s * when.uniform(1.0, 1.1)
        window = (starts_s, starts_s + window_s)
    else:
        lengths, power = _pieces(what, when, shape, busy_w, window_s + 3 * margin_s + 2.0)
        edges = np.concatenate(([-LONG_S, begins_s], begins_s + np.cumsum(lengths)))
        starts = edges[1:-1] if shape == "bursts" else edges[1:-1:2]
        start_s = starts[np.searchsorted(starts, begins_s + margin_s)]
        end_s = starts[np.searchsorted(starts, start_s + window_s)]
        levels = np.concatenate(([idle_w], power))
        if shape == "phase-change":
            changes_s = when.uniform(start_s, end_s)
            levels = np.where(edges[:-1] >= changes_s, levels * what.uniform(0.7, 1.2), levels)
        # The load goes on for a margin after the window, and the machine is idle again.
        last = int(np.searchsorted(edges, end_s + margin_s))
        edges = np.concatenate((edges[: last + 1], [LONG_S]))
        levels = np.concatenate((levels[:last], [idle_w]))
        window = (float(start_s), float(end_s))
    # A chip that warms up drifts by so much in a minute, and by less in less.
    share = float(np.exp(what.uniform(np.log(0.005), np.log(0.10)))) * busy_w * min(1.0, window_s / 60.0)
    return TrueLoad(
        edges_s=edges,
        levels_w=levels,
        begins_s=begins_s,
        window_s=window,
        ramp_w_per_s=what.choice([-1.0, 1.0]) * share / window_s if shape == "ramp" else 0.0,
        approach_w=share if shape == "warm-up" else 0.0,
        approach_s=float(np.exp(what.uniform(np.log(1.0), np.log(60.0)))),
    )


def _pieces(
    what: np.random.Generator, when: np.random.Generator, shape: str, busy_w: float, length_s: float
) -> tuple[Floats, Floats]:
    """Return how long each piece of a load lasts, and its power."""
    calm_w = busy_w * what.uniform(0.4, 0.9)
    if shape == "bursts":
        mean_s = float(np.exp(what.uniform(np.log(0.01), np.log(0.5))))
        count = int(3 * length_s / mean_s) + 20
        lengths = when.exponential(mean_s, count)
        return lengths, np.where(np.arange(count) % 2 == 0, busy_w, calm_w)
    period_s = float(np.exp(what.uniform(np.log(0.01), np.log(0.5))))
    count = int(1.3 * length_s / period_s) + 20
    each_s = period_s * when.lognormal(0.0, what.uniform(0.01, 0.10), count)
    duty = what.uniform(0.3, 0.9)
    lengths = np.column_stack((duty * each_s, (1 - duty) * each_s)).ravel()
    return lengths, np.tile([busy_w, calm_w], count)
