"""Sweeps that were measured in one go count as one observation: what the device was like then is in all of them.

A device drifts over minutes and hours: a neighbour on the same host, heat, a clock. Sweeps that follow each other agree
better than sweeps of another day do, so that ten of them would show a difference between two mornings as a loss. Two
sweeps of one side are therefore different observations only if a sweep of the other side was measured between them, as
it is where both sides are measured in turns, or if they are at least :data:`APART` apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain

from powerlab.domain.run import Run

APART = timedelta(hours=1)


def occasions(
    baseline: Sequence[Sequence[Run]], candidate: Sequence[Sequence[Run]]
) -> tuple[list[list[Run]], list[list[Run]]]:
    """Return both sides with the runs of sweeps that were measured in one go put together, in the order of time."""
    timed = [(_start(runs), side, runs) for side, sweeps in enumerate((baseline, candidate)) for runs in sweeps if runs]
    timed.sort(key=lambda one: one[0])
    found: tuple[list[list[Run]], list[list[Run]]] = ([], [])
    previous: tuple[datetime, int] | None = None
    for start, side, runs in timed:
        if previous is not None and previous[1] == side and start - previous[0] < APART:
            found[side][-1].extend(runs)
        else:
            found[side].append(list(runs))
        previous = _end(runs), side
    return found


def _start(runs: Sequence[Run]) -> datetime:
    return min(datetime.fromisoformat(run.started_at) for run in runs)


def _end(runs: Sequence[Run]) -> datetime:
    return max(datetime.fromisoformat(run.started_at) for run in runs)


def sweep_ids(sweeps: Sequence[Sequence[Run]]) -> tuple[str, ...]:
    """Return the identifiers of some sweeps."""
    return tuple(dict.fromkeys(run.sweep_id for run in chain(*sweeps)))
