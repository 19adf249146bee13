"""Leases: one holder at a time, and a late one is refused."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy import select

from powerlab.analysis.summary import searched_figures
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Finish, Lease, RebootNotice, RunUpload, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError, NotFoundError, StaleLeaseError
from powerlab.store.reads import queries
from powerlab.store.tables import AuditEventRow
from powerlab.store.writes import control, jobs
from powerlab.store.writes.runs import store_run
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock, runs_of
from store_writing import upload


def take(store: Store, device_id: str) -> Lease | None:
    with store.write() as session:
        return jobs.lease(session, device_id, store.clock())


def state(store: Store, sweep_id: str) -> SweepState:
    with store.session() as session:
        return queries.sweep(session, sweep_id).state


def test_a_job_is_given_out_once(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    assert (held.sweep_id, held.plan, held.fencing_token, held.done) == (sweep_id, PLAN, 1, ())
    assert take(store, device_id) is None
    assert state(store, sweep_id) is SweepState.RUNNING


def test_of_many_who_ask_at_once_one_gets_it(store: Store, device_id: str, sweep_id: str) -> None:
    gate = threading.Barrier(6)
    got: list[Lease | None] = []

    def ask() -> None:
        gate.wait()
        got.append(take(store, device_id))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 6
    assert [lease.sweep_id for lease in got if lease is not None] == [sweep_id]


def test_an_expired_lease_is_given_out_again_and_the_late_holder_refused(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    first = take(store, device_id)
    early, late, *_ = runs_of(sweep_id)
    upload(store, device_id, first, early)
    clock.forward(jobs.LEASE_S + 1)
    second = take(store, device_id)
    assert second.fencing_token > first.fencing_token
    assert [(run.point_id, run.repeat) for run in second.done] == [(early.point.id, early.repeat)]
    with pytest.raises(StaleLeaseError, match="given out again"):
        upload(store, device_id, first, late)
    with pytest.raises(StaleLeaseError), store.write() as session:
        jobs.heartbeat(session, device_id, first.job_id, first.fencing_token, clock())
    with pytest.raises(StaleLeaseError), store.write() as session:
        jobs.finish(session, device_id, first.job_id, Finish(fencing_token=1, state="done"), clock())
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep_id) == [early]
    upload(store, device_id, second, late)


def test_a_late_heartbeat_counts_while_nobody_else_was_given_the_job(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    clock.forward(10 * jobs.LEASE_S)
    with store.write() as session:
        jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock())
    assert take(store, device_id) is None


def test_a_heartbeat_prolongs(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    for _ in range(5):
        clock.forward(jobs.LEASE_S * 0.9)
        with store.write() as session:
            jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock())
    assert take(store, device_id) is None


def test_a_heartbeat_says_what_the_device_waits_for_until_it_goes_on(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)

    def beat(waits: str) -> str:
        with store.write() as session:
            jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock(), waits=waits)
        with store.session() as session:
            return queries.sweep(session, sweep_id).detail

    assert beat("waits to cool down") == "waits to cool down"
    assert beat("") == ""
    assert beat("hot\x00\n" + "!" * 1000) == "hot" + "!" * (jobs.MOST_WORDS - 3)
    with store.write() as session:
        control.pause(session, sweep_id, "ada", clock())
    assert beat("waits to cool down") == "paused by ada", "who paused it is told, and not what it would wait for"


def test_a_released_job_is_given_out_at_once(store: Store, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    with store.write() as session:
        jobs.release(session, device_id, held.job_id, held.fencing_token, store.clock())
    assert state(store, sweep_id) is SweepState.QUEUED
    assert take(store, device_id).fencing_token == 2


def test_a_search_that_goes_on_is_told_what_its_runs_measured(store: Store, clock: Clock, device_id: str) -> None:
    plan = replace(PLAN, search_percent=1.0)
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())
    held = take(store, device_id)
    run = runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    clock.forward(jobs.LEASE_S + 1)
    (known,) = take(store, device_id).done
    assert (known.point_id, known.repeat, known.figures) == (run.point.id, run.repeat, searched_figures(run))
    assert known.figures


@pytest.mark.parametrize("outcome", ["done", "failed"])
def test_a_finished_job_stays_finished(store: Store, device_id: str, sweep_id: str, outcome: str) -> None:
    held = take(store, device_id)
    message = Finish(fencing_token=held.fencing_token, state=outcome, detail="because")
    for _ in range(2):
        with store.write() as session:
            jobs.finish(session, device_id, held.job_id, message, store.clock())
    with store.session() as session:
        record = queries.sweep(session, sweep_id)
    assert (record.state, record.detail, record.finished_at) == (SweepState(outcome), "because", store.clock())
    assert take(store, device_id) is None
    with pytest.raises(StaleLeaseError, match="not running"), store.write() as session:
        jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, store.clock())


def test_other_devices_jobs_are_out_of_reach(store: Store, device_id: str, sweep_id: str, other_id: str) -> None:
    assert take(store, other_id) is None
    held = take(store, device_id)
    run = runs_of(sweep_id)[0]
    with pytest.raises(ForbiddenError), store.write() as session:
        store_run(session, other_id, RunUpload(fencing_token=held.fencing_token, run=run), store.clock())
    with pytest.raises(ForbiddenError), store.write() as session:
        jobs.heartbeat(session, other_id, held.job_id, held.fencing_token, store.clock())


def test_an_unknown_job_is_not_found(store: Store, device_id: str) -> None:
    with pytest.raises(NotFoundError), store.write() as session:
        jobs.heartbeat(session, device_id, "nonsense", 1, store.clock())


def notice(held: Lease, down_s: float = 900.0) -> RebootNotice:
    return RebootNotice(fencing_token=held.fencing_token, mode="MODE_10W", down_s=down_s)


def test_a_device_that_reboots_is_waited_for_and_no_longer_than_it_said(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    with store.write() as session:
        assert jobs.announce_reboot(session, device_id, held.job_id, notice(held), clock()) is SweepState.RUNNING
    with store.session() as session:
        record = queries.sweep(session, sweep_id)
        (event,) = session.scalars(select(AuditEventRow).where(AuditEventRow.action == "reboot"))
    assert (record.state, record.detail) == (SweepState.RUNNING, "rebooting into MODE_10W")
    assert event.detail == {"mode": "MODE_10W", "down_s": 900.0}
    clock.forward(899)
    assert take(store, device_id) is None
    clock.forward(2)
    assert take(store, device_id).fencing_token == held.fencing_token + 1
    with store.session() as session:
        assert queries.sweep(session, sweep_id).detail == ""


def test_a_device_that_is_back_is_waited_for_as_any_other(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held = take(store, device_id)
    with store.write() as session:
        jobs.announce_reboot(session, device_id, held.job_id, notice(held), clock())
        jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock())
    with store.session() as session:
        assert queries.sweep(session, sweep_id).detail == ""
    clock.forward(jobs.LEASE_S + 1)
    assert take(store, device_id) is not None


@pytest.mark.parametrize("down_s", [0.0, -1.0, 1801.0, float("inf"), float("nan")])
def test_nobody_is_waited_for_for_ever(store: Store, device_id: str, sweep_id: str, down_s: float) -> None:
    held = take(store, device_id)
    with pytest.raises(PowerlabError, match="a reboot takes 1 to 1800 s"), store.write() as session:
        jobs.announce_reboot(session, device_id, held.job_id, notice(held, down_s), store.clock())


def test_only_the_holder_of_a_running_job_reboots(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    old = take(store, device_id)
    with store.write() as session:
        control.pause(session, sweep_id, "somebody", clock())
        assert jobs.announce_reboot(session, device_id, old.job_id, notice(old), clock()) is SweepState.PAUSED
    with store.session() as session:
        assert queries.sweep(session, sweep_id).detail == "paused by somebody"
    with store.write() as session:
        control.resume(session, sweep_id, "somebody", clock())
    clock.forward(jobs.LEASE_S + 1)
    take(store, device_id)
    with pytest.raises(StaleLeaseError), store.write() as session:
        jobs.announce_reboot(session, device_id, old.job_id, notice(old), clock())
