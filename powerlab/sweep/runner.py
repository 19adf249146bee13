"""A plan carried out on a host, as a stream of events."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.sweep.events import SweepEvent
from powerlab.sweep.host import Host


def run_sweep(
    plan: SweepPlan,
    sweep_id: str,
    host: Host,
    done: frozenset[tuple[str, int]] = frozenset(),
    stop: threading.Event | None = None,
) -> Iterator[SweepEvent]:
    """Carry out a plan; a run that fails is recorded and the sweep goes on.

    Args:
        plan: what to run.
        sweep_id: stored with every run.
        host: where to run it.
        done: (point id, repeat) of runs measured before; they are left out.
        stop: when set, the sweep ends after the run in progress.

    Yields:
        events in the order in which things happen.

    Raises:
        PowerlabError: the plan cannot be carried out here (raised before the first event).
    """
    raise PowerlabError("the runner is being written.")
    yield
