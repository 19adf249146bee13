"""The fleet at a glance: counted as it happens, on both databases, and never by reading every run."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier, Thread

import pytest
from alembic import command
from sqlalchemy import delete, select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.run import Run, Verdict
from powerlab.protocol.messages import RunUpload, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.database import changing_tables
from powerlab.store.reads.fleet import Fleet, FleetDevice, read_fleet
from powerlab.store.schema import alembic_config
from powerlab.store.tables import DeviceTallyRow, RunMetricRow, RunRow, TraceChunkRow
from powerlab.store.writes.runs import store_run
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock, make_trace, runs_of
from statements import statements
from store_writing import take, upload, upload_trace


def fleet(store: Store) -> Fleet:
    with store.session() as session:
        return read_fleet(session, store.clock())


def of(store: Store, name: str = "board-1") -> FleetDevice:
    (found,) = (one for one in fleet(store).devices if one.name == name)
    return found


def test_an_empty_database_has_an_empty_fleet(store: Store) -> None:
    assert fleet(store) == Fleet(devices=(), jobs=dict.fromkeys(SweepState, 0), expired_leases=0, oldest_queued_at=None)


def test_a_device_says_what_it_is_and_when_it_spoke(store: Store, device_id: str, clock: Clock) -> None:
    one = of(store)
    assert (one.id, one.board, one.architecture, one.simulated) == (device_id, "generic", "aarch64", False)
    assert one.seen_at == clock.now
    assert (one.runs, one.sample_count, one.newest) == ({}, 0, None)


def test_jobs_wait_run_and_lose_their_lease(store: Store, device_id: str, sweep_id: str, clock: Clock) -> None:
    created = clock.now
    clock.forward(30)
    seen = fleet(store)
    assert (seen.jobs[SweepState.QUEUED], seen.oldest_queued_at, seen.expired_leases) == (1, created, 0)
    take(store, device_id)
    seen = fleet(store)
    assert (seen.jobs[SweepState.QUEUED], seen.jobs[SweepState.RUNNING], seen.oldest_queued_at) == (0, 1, None)
    assert (of(store).queued_jobs, of(store).running_jobs) == (0, 1)
    clock.forward(3600)
    assert fleet(store).expired_leases == 1


def test_runs_and_samples_are_counted_once(store: Store, device_id: str, sweep_id: str, other_id: str) -> None:
    held = take(store, device_id)
    first, second, third, *_ = runs_of(sweep_id)
    for run in (first, second, second, replace(third, verdict=Verdict.FAILED, metrics=())):
        upload(store, device_id, held, run)
    for _ in range(2):
        upload_trace(store, device_id, held, first.id, make_trace(count=700))
    upload_trace(store, device_id, held, third.id, make_trace(count=11))
    one = of(store)
    assert one.runs == {Verdict.FLAGGED: 2, Verdict.FAILED: 1}
    assert one.sample_count == 711
    assert of(store, "board-2").runs == {}


def test_an_upload_that_is_undone_counts_for_nothing(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    run = runs_of(sweep_id)[0]

    def store_and_break() -> None:
        with store.write() as session:
            store_run(session, device_id, RunUpload(fencing_token=held.fencing_token, run=run), store.clock())
            session.execute(text("UPDATE job SET state = 'asleep'"))

    with pytest.raises(IntegrityError):
        store_and_break()
    assert of(store).runs == {}


def test_the_newest_run_is_the_last_that_may_be_used(store: Store, device_id: str, sweep_id: str, clock: Clock) -> None:
    held = take(store, device_id)
    one, two, three, four, *_ = runs_of(sweep_id)
    for run in (
        replace(one, verdict=Verdict.VALID, findings=()),
        two,
        replace(three, verdict=Verdict.VOID),
        replace(four, verdict=Verdict.FAILED, metrics=()),
    ):
        clock.forward(10)
        upload(store, device_id, held, run)
        if run.verdict is Verdict.FLAGGED:
            arrived = clock.now
    newest = of(store).newest
    assert newest is not None
    assert (newest.point, newest.verdict, newest.received_at) == (two.point, Verdict.FLAGGED, arrived)
    assert {m.name: m for m in newest.metrics} == {m.name: m for m in two.metrics}


def test_the_effort_does_not_grow_with_what_is_stored(store: Store, device_id: str, sweep_id: str) -> None:
    with statements(store) as before:
        fleet(store)
    held = take(store, device_id)
    for run in runs_of(sweep_id):
        upload(store, device_id, held, run)
        upload_trace(store, device_id, held, run.id, make_trace(count=10))
    with statements(store) as after:
        fleet(store)
    assert len(after) == len(before)
    assert not [one for one in after if "trace_chunk" in one]
    for one in after:  # runs are asked for by their key alone
        assert "FROM run " not in one
        assert "JOIN run ON" not in one or "run.id = device_tally.newest_run_id" in one


def test_a_deleted_run_leaves_the_counts(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    run = runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    with store.write() as session:
        session.execute(delete(RunMetricRow).where(RunMetricRow.run_id == run.id))
        session.execute(delete(RunRow).where(RunRow.id == run.id))
    assert of(store).runs == {Verdict.FLAGGED: 1}
    assert of(store).newest is None


def test_two_sweeps_of_a_device_count_at_the_same_time(store: Store, device_id: str) -> None:
    """The first runs ever, from two sessions: none is lost, and none is refused."""
    leases = []
    for _ in range(2):
        with store.write() as session:
            create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())
        leases.append(take(store, device_id))
    together = Barrier(2)

    def send(number: int) -> None:
        together.wait()
        for run in runs_of(leases[number].sweep_id):
            upload(store, device_id, leases[number], run)

    threads = [Thread(target=send, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert of(store).runs == {Verdict.FLAGGED: 2 * len(runs_of("x"))}


def tallies(store: Store) -> list[tuple[object, ...]]:
    rows = select(DeviceTallyRow).order_by(DeviceTallyRow.device_id, DeviceTallyRow.verdict)
    with store.session() as session:
        return [
            (row.device_id, row.verdict, row.run_count, row.sample_count, row.newest_run_id)
            for row in session.scalars(rows)
        ]


def test_the_migration_counts_what_was_stored_before(
    store: Store, device_id: str, other_id: str, sweep_id: str, clock: Clock
) -> None:
    with store.write() as session:
        create_sweep(session, SweepRequest(device_id=other_id, plan=PLAN), store.clock())
    for one in (device_id, other_id):
        held = take(store, one)
        for number, run in enumerate(runs_of(held.sweep_id)[:6]):
            clock.forward(1)
            stored: Run = replace(run, verdict=Verdict.VALID, findings=()) if number % 3 else run
            upload(store, one, held, stored)
            if number < 4:
                upload_trace(store, one, held, run.id, make_trace(count=700))
    before = tallies(store)
    assert len(before) == 4
    for revision in ("0004", "head"):
        with changing_tables(store.engine) as connection:
            (command.upgrade if revision == "head" else command.downgrade)(alembic_config(connection), revision)
    assert tallies(store) == before
    with store.session() as session:
        assert session.scalar(select(TraceChunkRow.id).limit(1)) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE device_tally SET run_count = 0",
        "UPDATE device_tally SET verdict = 'splendid'",
        "UPDATE device_tally SET newest_run_id = 'nothing'",
        "UPDATE device_tally SET device_id = 'nobody'",
    ],
)
def test_the_database_refuses_impossible_counts(store: Store, device_id: str, sweep_id: str, statement: str) -> None:
    held = take(store, device_id)
    upload(store, device_id, held, runs_of(sweep_id)[0])
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))
