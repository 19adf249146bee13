"""What computed a run is stored with its workload, and runs are found by it."""

from __future__ import annotations

from dataclasses import replace

from alembic import command
from sqlalchemy import text

from powerlab.domain.workload import Processor
from powerlab.protocol.messages import SweepRequest
from powerlab.store import Store
from powerlab.store.database import changing_tables
from powerlab.store.reads import queries
from powerlab.store.schema import alembic_config
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, runs_of
from store_writing import take, upload

BOTH = replace(PLAN, engines=("onnxruntime",), processors=(Processor.CPU, Processor.GPU))


def test_runs_on_both_processors_come_back_equal_and_are_found_by_it(store: Store, device_id: str) -> None:
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=BOTH), store.clock())
    held, runs = take(store, device_id), runs_of(sweep_id, BOTH)
    for run in runs:
        assert upload(store, device_id, held, run)
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep_id) == runs
        for processor, count in ((Processor.CPU, 8), (Processor.GPU, 4)):
            found = [one for _, one in queries.stream_runs(session, queries.RunFilter(processor=processor))]
            assert {one.point.workload.processor for one in found} == {processor}
            assert len({one.point for one in found}) == count


def test_engines_of_cards_alone_become_graphics_processors(store: Store, device_id: str, sweep_id: str) -> None:
    with changing_tables(store.engine) as connection:
        command.downgrade(alembic_config(connection), "0023")
        connection.execute(text("UPDATE workload SET engine = 'onnxruntime-cuda' WHERE batch_size = 4"))
        command.upgrade(alembic_config(connection), "head")
    with store.session() as session:
        found = set(session.execute(text("SELECT batch_size, engine, processor FROM workload")).all())
    assert found == {(1, "builtin", "cpu"), (4, "onnxruntime-cuda", "gpu")}
