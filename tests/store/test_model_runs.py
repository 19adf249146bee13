"""Which models were measured and how often, on both databases."""

from __future__ import annotations

from powerlab.store import Store
from powerlab.store.reads.model_runs import model_runs
from server_examples import runs_of
from store_writing import take, upload


def test_the_runs_of_a_models_workloads_are_counted_together(store: Store, device_id: str, sweep_id: str) -> None:
    with store.session() as session:
        assert model_runs(session) == []
    held, runs = take(store, device_id), runs_of(sweep_id)
    for run in runs:
        upload(store, device_id, held, run)
    with store.session() as session:
        found = model_runs(session)
    models = sorted({run.point.workload.model for run in runs})
    assert [one.model for one in found] == models
    assert sum(one.run_count for one in found) == len(runs)
    assert all(one.newest_at.tzinfo is not None for one in found)
