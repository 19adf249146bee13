"""Whose turn it is: the highest priority, then everybody in turn, then the oldest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import JobRecord, SweepState
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.jobs import JobFilter, job, list_jobs
from powerlab.store.writes import jobs
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock
from store_writing import take

SMALL = replace(PLAN, threads=(1,), batch_sizes=(1,), modes=("current",))


def submit(store: Store, clock: Clock, device_id: str, by: str, priority: int = 0) -> str:
    clock.forward(1)
    with store.write() as session:
        return create_sweep(session, SweepRequest(device_id=device_id, plan=SMALL, priority=priority), clock(), by=by)


def order(store: Store, clock: Clock, device_id: str, count: int) -> list[str]:
    """Lease that many jobs, one after the other."""
    taken = []
    for _ in range(count):
        clock.forward(1)
        taken.append(take(store, device_id).sweep_id)
    return taken


def test_the_highest_priority_comes_first_then_the_oldest(store: Store, clock: Clock, device_id: str) -> None:
    usual, low, high, also_high = (submit(store, clock, device_id, "ada", priority) for priority in (0, -5, 7, 7))
    assert order(store, clock, device_id, 4) == [high, also_high, usual, low]


def test_who_asked_for_many_lets_others_in_between(store: Store, clock: Clock, device_id: str) -> None:
    adas = [submit(store, clock, device_id, "ada") for _ in range(4)]
    bobs = [submit(store, clock, device_id, "bob") for _ in range(2)]
    cleo = submit(store, clock, device_id, "cleo")
    wanted = [adas[0], bobs[0], cleo, adas[1], bobs[1], adas[2], adas[3]]
    assert order(store, clock, device_id, 7) == wanted


def test_a_newcomer_is_next(store: Store, clock: Clock, device_id: str) -> None:
    adas = [submit(store, clock, device_id, "ada") for _ in range(3)]
    assert order(store, clock, device_id, 2) == adas[:2]
    bob = submit(store, clock, device_id, "bob")
    assert order(store, clock, device_id, 2) == [bob, adas[2]]


def test_priority_goes_before_turns(store: Store, clock: Clock, device_id: str) -> None:
    urgent = [submit(store, clock, device_id, "ada", 1) for _ in range(2)]
    bob = submit(store, clock, device_id, "bob")
    assert order(store, clock, device_id, 3) == [*urgent, bob]


def test_turns_are_taken_on_each_device(store: Store, clock: Clock, device_id: str, other_id: str) -> None:
    submit(store, clock, other_id, "ada")
    order(store, clock, other_id, 1)
    ada, bob = submit(store, clock, device_id, "ada"), submit(store, clock, device_id, "bob")
    assert order(store, clock, device_id, 2) == [ada, bob]


@pytest.mark.parametrize("priority", [1001, -1001, 2**40])
def test_a_priority_out_of_bounds_is_refused(store: Store, clock: Clock, device_id: str, priority: int) -> None:
    with pytest.raises(PowerlabError, match=f"the priority is {priority}; give an integer from -1000 to 1000"):
        submit(store, clock, device_id, "ada", priority)


def listed(store: Store, **request: object) -> list[JobRecord]:
    with store.session() as session:
        return list_jobs(session, JobFilter(**request))


def test_the_queue_can_be_read(store: Store, clock: Clock, device_id: str, other_id: str) -> None:
    first = submit(store, clock, device_id, "ada")
    second = submit(store, clock, device_id, "bob", 3)
    elsewhere = submit(store, clock, other_id, "ada")
    held = take(store, device_id)
    assert [one.sweep_id for one in listed(store)] == [elsewhere, second, first]
    (running,) = listed(store, state=SweepState.RUNNING)
    assert (running.sweep_id, running.priority, running.submitter) == (second, 3, "bob")
    assert (running.device_name, running.leased_at) == ("board-1", clock())
    assert (running.held_until - clock()).total_seconds() == jobs.LEASE_S
    assert [one.sweep_id for one in listed(store, device_id=other_id)] == [elsewhere]
    assert [one.id for one in listed(store, sweep_id=second)] == [held.job_id]
    assert [one.sweep_id for one in listed(store, submitter="ada")] == [elsewhere, first]
    newest, *rest = listed(store)
    assert listed(store, after=(newest.created_at, newest.id)) == rest
    with store.session() as session:
        assert job(session, held.job_id) == running
        with pytest.raises(NotFoundError, match="no job 'x'"):
            job(session, "x")
