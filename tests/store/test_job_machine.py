"""Random lives of jobs, on both databases; see :mod:`job_machine` and :mod:`fleet_machine`."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from fleet_machine import FleetMachine
from job_machine import JobMachine
from powerlab.store import Store
from server_examples import Clock

LIVES = int(os.environ.get("POWERLAB_JOB_LIVES", "9"))
"""Random lives of one device on SQLite; a third as many of three devices, and on PostgreSQL, which takes longer."""
FEW = 3


@pytest.mark.parametrize("most", [FEW, pytest.param(LIVES, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("machine", [JobMachine, FleetMachine])
def test_never_two_holders_never_a_run_lost_or_doubled_and_always_an_end(
    store: Store, clock: Clock, machine: type[JobMachine], most: int
) -> None:
    lives = max(1, most // machine.device_count // (1 if store.engine.dialect.name == "sqlite" else 3))
    run_state_machine_as_test(
        lambda: machine(store, clock),
        settings=settings(
            max_examples=lives, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
