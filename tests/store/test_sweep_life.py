"""Pausing, resuming and cancelling: who holds the job hands in what it has, and nobody else is given it meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from powerlab.protocol.messages import Finish, Lease
from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError, StaleLeaseError
from powerlab.store.reads import queries
from powerlab.store.tables import AuditEventRow
from powerlab.store.writes import control, jobs
from server_examples import Clock, runs_of
from store_writing import take, upload

Change = Callable[..., None]


def change(store: Store, sweep_id: str, how: Change) -> SweepRecord:
    with store.write() as session:
        how(session, sweep_id, "ada", store.clock())
    return record(store, sweep_id)


def record(store: Store, sweep_id: str) -> SweepRecord:
    with store.session() as session:
        return queries.sweep(session, sweep_id)


def ask(store: Store, device_id: str) -> Lease | None:
    with store.write() as session:
        return jobs.lease(session, device_id, store.clock())


def say(store: Store, how: Any, device_id: str, held: Lease, *more: Any) -> Any:
    with store.write() as session:
        return how(session, device_id, held.job_id, *(more or (held.fencing_token,)), store.clock())


def test_a_paused_sweep_waits_until_it_is_resumed(store: Store, device_id: str, sweep_id: str) -> None:
    paused = change(store, sweep_id, control.pause)
    assert (paused.state, paused.detail, paused.held_until) == (SweepState.PAUSED, "paused by ada", None)
    assert ask(store, device_id) is None
    resumed = change(store, sweep_id, control.resume)
    assert (resumed.state, resumed.detail) == (SweepState.QUEUED, "")
    assert take(store, device_id).sweep_id == sweep_id


def test_the_holder_of_a_paused_job_hears_of_it_and_hands_in_its_runs(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held, (early, late, *_) = take(store, device_id), runs_of(sweep_id)
    assert say(store, jobs.heartbeat, device_id, held) is SweepState.RUNNING
    upload(store, device_id, held, early)
    assert change(store, sweep_id, control.pause).held_until is not None
    clock.forward(jobs.LEASE_S * 5)  # a run may take longer than a lease
    assert say(store, jobs.heartbeat, device_id, held) is SweepState.PAUSED
    assert upload(store, device_id, held, late)
    assert not upload(store, device_id, held, late)
    assert say(store, jobs.release, device_id, held) is SweepState.PAUSED
    left = record(store, sweep_id)
    assert (left.state, left.held_until, left.stored_run_count) == (SweepState.PAUSED, None, 2)
    with pytest.raises(StaleLeaseError, match="paused"):  # one that was on its way when the job was let go
        say(store, jobs.heartbeat, device_id, held)
    change(store, sweep_id, control.resume)
    again = take(store, device_id)
    assert {(run.point_id, run.repeat) for run in again.done} == {(run.point.id, run.repeat) for run in (early, late)}


def test_resumed_before_the_holder_let_go_it_stays_with_the_holder(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    change(store, sweep_id, control.pause)
    clock.forward(jobs.LEASE_S / 2)
    assert change(store, sweep_id, control.resume).state is SweepState.RUNNING
    assert ask(store, device_id) is None
    assert say(store, jobs.heartbeat, device_id, held) is SweepState.RUNNING


def test_resumed_after_the_holder_died_it_is_given_out_again(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    change(store, sweep_id, control.pause)
    clock.forward(jobs.LEASE_S + 1)
    assert change(store, sweep_id, control.resume).state is SweepState.QUEUED
    again = take(store, device_id)
    assert again.fencing_token == held.fencing_token + 1
    with pytest.raises(StaleLeaseError, match="given out again"):
        upload(store, device_id, held, runs_of(sweep_id)[0])


def test_a_cancelled_job_takes_late_runs_once_and_is_never_given_out(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    cancelled = change(store, sweep_id, control.cancel)
    assert (cancelled.state, cancelled.detail) == (SweepState.CANCELLED, "cancelled by ada")
    assert cancelled.finished_at == clock()
    clock.forward(24 * 3600)  # the agent was without a network meanwhile
    assert say(store, jobs.heartbeat, device_id, held) is SweepState.CANCELLED
    assert [upload(store, device_id, held, run) for _ in range(2)] == [True, False]
    assert say(store, jobs.release, device_id, held) is SweepState.CANCELLED
    assert record(store, sweep_id).held_until is None
    assert ask(store, device_id) is None


def test_a_sweep_that_was_complete_when_it_was_paused_is_done(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    change(store, sweep_id, control.pause)
    for run in runs_of(sweep_id):
        upload(store, device_id, held, run)
    say(store, jobs.finish, device_id, held, Finish(fencing_token=held.fencing_token, state="done"))
    assert (record(store, sweep_id).state, record(store, sweep_id).detail) == (SweepState.DONE, "")


def test_a_cancelled_sweep_that_was_finished_stays_cancelled(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    change(store, sweep_id, control.cancel)
    say(store, jobs.finish, device_id, held, Finish(fencing_token=held.fencing_token, state="done"))
    left = record(store, sweep_id)
    assert (left.state, left.held_until) == (SweepState.CANCELLED, None)


@pytest.mark.parametrize("how", [control.pause, control.resume, control.cancel])
def test_saying_it_twice_changes_nothing(store: Store, clock: Clock, sweep_id: str, how: Change) -> None:
    first = change(store, sweep_id, how)
    clock.forward(1)
    assert change(store, sweep_id, how) == first
    with store.session() as session:
        said = [event.action for event in session.query(AuditEventRow) if event.actor == "ada"]
    assert len(said) == (0 if how is control.resume else 1)


@pytest.mark.parametrize("how", [control.pause, control.resume, control.cancel])
def test_what_is_over_stays_over(store: Store, device_id: str, sweep_id: str, how: Change) -> None:
    held = take(store, device_id)
    say(store, jobs.finish, device_id, held, Finish(fencing_token=held.fencing_token, state="failed", detail="why"))
    before = record(store, sweep_id)
    with pytest.raises(ConflictError, match="is failed; only one that is not over"):
        change(store, sweep_id, how)
    assert record(store, sweep_id) == before


@pytest.mark.parametrize("how", [control.pause, control.resume, control.cancel])
def test_what_is_not_there_cannot_be_changed(store: Store, how: Change) -> None:
    with pytest.raises(NotFoundError, match="no sweep 'nothing'"):
        change(store, "nothing", how)
