"""Random lives of jobs, on both databases; see :mod:`job_machine`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from job_machine import JobMachine
from powerlab.store import Store
from server_examples import Clock

LIVES = int(os.environ.get("POWERLAB_JOB_LIVES", "15"))
"""Random lives on SQLite; on PostgreSQL, where a step takes longer, a third as many."""


def test_never_two_holders_never_a_run_lost_or_doubled_and_always_an_end(store: Store, clock: Clock) -> None:
    lives = LIVES if store.engine.dialect.name == "sqlite" else max(1, LIVES // 3)
    run_state_machine_as_test(
        lambda: JobMachine(store, clock),
        settings=settings(
            max_examples=lives, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
