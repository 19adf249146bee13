"""Runs that trained are stored as such, and found as such."""

from __future__ import annotations

from dataclasses import replace

import pytest
from alembic import command
from sqlalchemy import text

from powerlab.domain.workload import Recompute, WorkloadKind
from powerlab.protocol.messages import SweepRequest
from powerlab.store import Store
from powerlab.store.database import changing_tables
from powerlab.store.reads import queries
from powerlab.store.reads.run_sets import stored_set
from powerlab.store.schema import alembic_config
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, runs_of
from store_writing import take, upload

TRAINS = replace(PLAN, workload=WorkloadKind.TRAIN, optimizers=("sgd", "adam"), recompute=tuple(Recompute))


@pytest.fixture
def trained(store: Store, device_id: str) -> str:
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=TRAINS), store.clock())
    held = take(store, device_id)
    for run in runs_of(sweep_id, TRAINS):
        assert upload(store, device_id, held, run)
    return sweep_id


def test_runs_come_back_equal_and_are_found_by_workload_and_optimizer(store: Store, trained: str) -> None:
    runs = runs_of(trained, TRAINS)
    with store.session() as session:
        assert len(queries.runs_of_sweep(session, trained)) == len(runs)
        for filters, count in (
            (queries.RunFilter(workload=WorkloadKind.TRAIN), len(runs)),
            (queries.RunFilter(workload=WorkloadKind.INFERENCE), 0),
            (queries.RunFilter(optimizer="adam"), len(runs) // 2),
            (queries.RunFilter(recompute=Recompute.YES), len(runs) // 2),
        ):
            assert len([one for _, one in queries.stream_runs(session, filters)]) == count
        chosen = stored_set(session, "workload=train,optimizer=adam,recompute=yes").runs.runs
        assert {(run.point.workload.optimizer, run.point.workload.recompute) for run in chosen} == {("adam", "yes")}


def test_workloads_of_older_tables_are_inference(store: Store, sweep_id: str) -> None:
    with changing_tables(store.engine) as connection:
        command.downgrade(alembic_config(connection), "0025")
        command.upgrade(alembic_config(connection), "head")
    with store.session() as session:
        said = session.execute(text("SELECT kind, optimizer, recompute FROM workload")).all()
        assert set(said) == {("inference", "", "no")}
