"""Adding repeats: the same sweep goes on, its device measures what is missing, and its answer is computed again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Finish
from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import summaries_of_sweep
from powerlab.store.writes import control, jobs
from powerlab.store.writes.repeats import add_repeats
from server_examples import PLAN, runs_of
from store_writing import take, upload


def more(store: Store, sweep_id: str, add: int = 3) -> SweepRecord:
    with store.write() as session:
        add_repeats(session, sweep_id, "ada", store.clock(), add=add)
    with store.session() as session:
        return queries.sweep(session, sweep_id)


def measured(store: Store, device_id: str, sweep_id: str, state: str = "done", most: int | None = None) -> None:
    held = take(store, device_id)
    for run in runs_of(sweep_id)[:most]:
        upload(store, device_id, held, run)
    message = Finish(fencing_token=held.fencing_token, state=state, detail="")
    with store.write() as session:
        jobs.finish(session, device_id, held.job_id, message, store.clock())


@pytest.mark.parametrize("state", ["done", "failed"])
def test_its_device_is_given_the_sweep_again_and_its_runs_join(
    store: Store, device_id: str, sweep_id: str, state: str
) -> None:
    measured(store, device_id, sweep_id, state)
    queued = more(store, sweep_id)
    assert (queued.state, queued.plan.repeats, queued.finished_at) == (SweepState.QUEUED, PLAN.repeats + 3, None)
    assert queued.planned_run_count == len(PLAN.points()) * (PLAN.repeats + 3)
    held = take(store, device_id)
    assert (held.sweep_id, held.plan.repeats) == (sweep_id, PLAN.repeats + 3)
    assert len(held.done) == queued.stored_run_count
    run = runs_of(sweep_id)[0]
    late = replace(run, id="00000000-0000-4000-8000-00000000ffff", repeat=PLAN.repeats + 2)
    assert upload(store, device_id, held, late)
    with store.session() as session:
        (summary,) = [one for one in summaries_of_sweep(session, sweep_id) if one.point == run.point]
    assert summary.run_count == PLAN.repeats + 1


def test_repeats_are_counted_from_those_that_were_made(store: Store, device_id: str, sweep_id: str) -> None:
    """Of a sweep that broke off, what is missing is made first: no more is asked for than was meant."""
    measured(store, device_id, sweep_id, "failed", most=1)
    assert more(store, sweep_id, 1).plan.repeats == PLAN.repeats
    assert take(store, device_id).plan.repeats == PLAN.repeats


def test_a_second_press_adds_nothing(store: Store, device_id: str, sweep_id: str) -> None:
    measured(store, device_id, sweep_id)
    once = more(store, sweep_id)
    with pytest.raises(ConflictError, match=r"is queued; repeats can be added to one that is done or failed\.$"):
        more(store, sweep_id)
    with store.session() as session:
        assert queries.sweep(session, sweep_id) == once


def test_a_cancelled_sweep_stays_so(store: Store, sweep_id: str) -> None:
    with store.write() as session:
        control.cancel(session, sweep_id, "ada", store.clock())
    with pytest.raises(ConflictError, match="is cancelled"):
        more(store, sweep_id)


@pytest.mark.parametrize(("add", "sentence"), [(0, "0 repeats add nothing"), (10**7, "a sweep has at most")])
def test_impossible_numbers_are_refused_and_change_nothing(
    store: Store, device_id: str, sweep_id: str, add: int, sentence: str
) -> None:
    measured(store, device_id, sweep_id)
    with pytest.raises(PowerlabError, match=sentence):
        more(store, sweep_id, add)
    with store.session() as session:
        assert queries.sweep(session, sweep_id).state is SweepState.DONE


def test_a_sweep_that_is_not_there_gets_no_repeats(store: Store) -> None:
    with pytest.raises(NotFoundError):
        more(store, "00000000-0000-4000-8000-000000000000")
