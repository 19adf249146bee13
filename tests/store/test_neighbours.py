"""The runs before and after one, in the order of the plan, on both databases."""

from __future__ import annotations

from powerlab.store import Store
from powerlab.store.reads.neighbours import Neighbours, neighbours
from server_examples import runs_of
from store_writing import take, upload


def test_runs_stand_beside_each_other_as_their_sweep_lists_them(store: Store, device_id: str, sweep_id: str) -> None:
    held, runs = take(store, device_id), runs_of(sweep_id)
    for run in reversed(runs):
        upload(store, device_id, held, run)
    ids = [None, *(run.id for run in runs), None]
    with store.session() as session:
        found = [neighbours(session, run.id) for run in runs]
    assert found == [Neighbours(previous=before, next=after) for before, after in zip(ids[:-2], ids[2:], strict=True)]


def test_a_run_that_is_not_there_has_none(store: Store) -> None:
    with store.session() as session:
        assert neighbours(session, "none") == Neighbours(previous=None, next=None)
