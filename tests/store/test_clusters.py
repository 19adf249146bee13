"""A sweep of several devices: its job is given out when all of them ask, and the others follow the first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import WorkloadKind
from powerlab.protocol.bookings import BookingKind, BookingRequest
from powerlab.protocol.fleet import Activity
from powerlab.protocol.messages import (
    CloneRequest,
    EnrolmentCodeRequest,
    EnrolRequest,
    Finish,
    Lease,
    SweepRequest,
)
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, ForbiddenError, StaleLeaseError
from powerlab.store.reads import queries
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.jobs import JobFilter, list_jobs
from powerlab.store.reads.previews import preview
from powerlab.store.reads.queue import devices_with_jobs
from powerlab.store.writes import clusters, jobs
from powerlab.store.writes.bookings import book
from powerlab.store.writes.clones import cloned
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep, submit_sweep
from server_examples import PLAN, Clock, capabilities, device

TOGETHER = replace(
    PLAN, threads=(1,), batch_sizes=(2,), modes=("current",), workload=WorkloadKind.TRAIN, optimizers=("sgd",)
)


def add(store: Store, name: str, *, clusters: bool = True) -> str:
    """Enrol a device."""
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        able = replace(capabilities(), clusters=clusters)
        request = EnrolRequest(code=code, device=device(name), capabilities=able)
        return enrol(session, request, store.clock()).device_id


@pytest.fixture
def device_id(store: Store) -> str:
    return add(store, "one")


@pytest.fixture
def other_id(store: Store) -> str:
    return add(store, "two")


def ask(store: Store, clock: Clock, device_id: str) -> Lease | None:
    clock.forward(1)
    with store.write() as session:
        return jobs.lease(session, device_id, clock())


def submit(store: Store, clock: Clock, first: str, *others: str, plan: SweepPlan = TOGETHER) -> str:
    with store.write() as session:
        return create_sweep(session, SweepRequest(device_id=first, with_ids=others, plan=plan), clock())


def meet(store: Store, lease: Lease, address: str = "10.0.0.1:4000") -> None:
    with store.write() as session:
        job = jobs.held_job_of_sweep(session, _device(store, lease), lease.sweep_id, lease.fencing_token)
        clusters.meet(session, job, address, "secret")


def _device(store: Store, lease: Lease) -> str:
    with store.session() as session:
        return queries.sweep(session, lease.sweep_id).device_id


def standing(store: Store, clock: Clock, device_id: str, lease: Lease) -> SweepState:
    with store.write() as session:
        return jobs.heartbeat(session, device_id, lease.job_id, lease.fencing_token, clock())


def test_the_job_is_given_out_when_all_ask_and_the_other_follows(store, clock, device_id, other_id):
    sweep_id = submit(store, clock, device_id, other_id)
    assert ask(store, clock, device_id) is None
    with store.session() as session:
        record = queries.sweep(session, sweep_id)
        assert list(session.scalars(devices_with_jobs(clock()))) == []
    assert record.plan.nodes == 2
    assert len(record.nodes) == 1
    assert record.place == f"{record.device_name} with {record.nodes[0]}"
    assert record.detail == f"begins when {record.device_name}, {record.nodes[0]} ask for work at the same time"
    assert ask(store, clock, other_id) is None
    with store.session() as session:
        assert list(session.scalars(devices_with_jobs(clock()))) == [device_id]
    lease = ask(store, clock, device_id)
    assert (lease.nodes, lease.part) == (record.nodes, None)
    alone = submit(store, clock, other_id, plan=replace(TOGETHER, batch_sizes=(1,)))
    assert ask(store, clock, other_id) is None, "it is kept for the sweep of both, whose first device is not ready yet"
    meet(store, lease)
    with store.session() as session:
        assert other_id in session.scalars(devices_with_jobs(clock()))
    part = ask(store, clock, other_id)
    assert (part.sweep_id, part.fencing_token, part.nodes) == (sweep_id, lease.fencing_token, ())
    assert (part.part.address, part.part.secret) == ("10.0.0.1:4000", "secret")
    assert standing(store, clock, other_id, part) is SweepState.RUNNING
    with pytest.raises(ForbiddenError), store.write() as session:
        jobs.finish(session, other_id, part.job_id, Finish(fencing_token=part.fencing_token, state="done"), clock())
    with store.write() as session:
        done = Finish(fencing_token=lease.fencing_token, state="done")
        jobs.finish(session, device_id, lease.job_id, done, clock())
    assert standing(store, clock, other_id, part) is SweepState.DONE
    assert ask(store, clock, other_id).sweep_id == alone


def test_a_sweep_of_several_is_found_by_each_of_its_devices(store, clock, device_id, other_id):
    sweep_id, alone = submit(store, clock, device_id, other_id), submit(store, clock, other_id)
    third = add(store, "three")
    with store.session() as session:
        for one, wanted in ((device_id, {sweep_id}), (other_id, {sweep_id, alone}), (third, set())):
            assert {found.id for found in queries.list_sweeps(session, SweepFilter(device_id=one))} == wanted
            assert {found.sweep_id for found in list_jobs(session, JobFilter(device_id=one))} == wanted


def test_a_device_that_asked_long_ago_or_has_work_does_not_count(store, clock, device_id, other_id):
    submit(store, clock, device_id, other_id)
    ask(store, clock, other_id)
    clock.forward(20)
    assert ask(store, clock, device_id) is None
    ask(store, clock, other_id)
    alone = submit(store, clock, other_id, plan=replace(TOGETHER, batch_sizes=(1,)))
    assert ask(store, clock, other_id).sweep_id == alone
    assert ask(store, clock, device_id) is None


def test_who_follows_is_busy_and_a_booking_of_its_device_ends_the_sweep(store, clock, device_id, other_id):
    sweep_id = submit(store, clock, device_id, other_id)
    ask(store, clock, other_id)
    lease = ask(store, clock, device_id)
    with store.session() as session:
        for found in (fleet_status(session, clock()), fleet_status(session, clock(), device_id=other_id)):
            (member,) = (one for one in found if one.id == other_id)
            assert (member.activity, member.running.record.id) == (Activity.BUSY, sweep_id)
    with store.write() as session:
        ends_at = clock() + timedelta(hours=1)
        wanted = BookingRequest(
            device_id=other_id, kind=BookingKind.MAINTENANCE, starts_at=clock(), ends_at=ends_at, reason="dust"
        )
        book(session, wanted, "ada", clock())
    clock.forward(1)
    assert standing(store, clock, device_id, lease) is SweepState.QUEUED


def test_two_clusters_do_not_wait_for_each_other(store, clock, device_id, other_id):
    one, two = submit(store, clock, device_id, other_id), submit(store, clock, other_id, device_id)
    assert ask(store, clock, device_id) is None
    given = ask(store, clock, other_id)
    assert given.sweep_id == two
    assert ask(store, clock, device_id) is None, "it has work with the other one"
    with store.write() as session:
        done = Finish(fencing_token=given.fencing_token, state="done")
        jobs.finish(session, other_id, given.job_id, done, clock())
    assert ask(store, clock, other_id) is None
    assert ask(store, clock, device_id).sweep_id == one


def test_who_follows_is_free_when_the_first_device_is_gone_and_its_lease_over(store, clock, device_id, other_id):
    submit(store, clock, device_id, other_id)
    ask(store, clock, other_id)
    lease = ask(store, clock, device_id)
    meet(store, lease)
    part = ask(store, clock, other_id)
    clock.forward(jobs.LEASE_S + 1)
    assert standing(store, clock, other_id, part) is SweepState.QUEUED
    assert ask(store, clock, other_id) is None
    again = ask(store, clock, device_id)
    assert again.fencing_token == lease.fencing_token + 1
    with pytest.raises(StaleLeaseError, match="was given out again"):
        standing(store, clock, other_id, part)
    assert ask(store, clock, other_id) is None, "the meeting of the lease before is over"


def test_bad_requests_get_a_sentence(store, clock, device_id, other_id):
    def refused(sentence: str, *devices: str, plan: SweepPlan = TOGETHER) -> None:
        with pytest.raises(PowerlabError, match=sentence):
            submit(store, clock, *devices, plan=plan)

    refused("there is no device 'none'", device_id, "none")
    refused("is named twice; name every device of a cluster once", device_id, device_id)
    refused(
        "a batch of 1 has fewer samples than the 2 devices",
        device_id,
        other_id,
        plan=replace(TOGETHER, batch_sizes=(1,)),
    )
    inference = replace(TOGETHER, workload=WorkloadKind.INFERENCE, optimizers=())
    refused("several devices train together, and infer by themselves", device_id, other_id, plan=inference)
    old = add(store, "old", clusters=False)
    refused("old does not say that it can train with others", device_id, old)
    clock.forward(600)
    refused("is offline: it was not heard of for 10 min, and several devices begin together", device_id, other_id)
    with store.session() as session:
        seen = preview(session, SweepRequest(device_id=device_id, with_ids=(other_id,), plan=TOGETHER), clock())
    assert any("is offline" in sentence for sentence in seen.complaints)


def test_asking_again_makes_no_second_sweep_and_a_clone_has_the_same_devices(store, clock, device_id, other_id):
    request = SweepRequest(device_id=device_id, with_ids=(other_id,), plan=TOGETHER)
    with store.write() as session:
        first, second = (submit_sweep(session, request, clock(), by="ada", key="k") for _ in range(2))
        assert (first[1], second) == (True, (first[0], False))
        with pytest.raises(ConflictError):
            submit_sweep(session, replace(request, with_ids=()), clock(), by="ada", key="k")
        assert cloned(session, first[0], CloneRequest()).with_ids == (other_id,)
        assert cloned(session, first[0], CloneRequest(device_id=other_id)).with_ids == ()
