"""The life of jobs on several devices that compete for them, some of them booked; as :mod:`job_machine` has it for one.

Beside what holds there: a sweep for any of them goes to one, for good; a device is given nobody's jobs while it is
booked for somebody else, and nobody's job is withheld by a booking of another device; nobody touches another's job.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from sqlalchemy import select

from job_machine import PLACES, PLAN, Hold, JobMachine, fence
from powerlab.domain.selector import Selector
from powerlab.protocol.bookings import BookingKind, BookingRecord, BookingRequest
from powerlab.protocol.labs import CampaignRequest, Each
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import JobRecord
from powerlab.store.errors import ConflictError, ForbiddenError
from powerlab.store.reads import queries
from powerlab.store.reads.campaigns import campaign
from powerlab.store.tables import JobRow
from powerlab.store.writes import jobs
from powerlab.store.writes.bookings import book, unbook
from powerlab.store.writes.campaigns import submit_campaign
from server_examples import make_run
from store_writing import upload


class FleetMachine(JobMachine):
    """Three devices of one board."""

    device_count = 3

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.bookings: list[BookingRecord] = []
        self.for_any: set[str] = set()
        self.whose: dict[str, str] = {}

    @rule(by=st.sampled_from("abc"), priority=st.integers(-1, 1))
    def submit_any(self, by: str, priority: int) -> None:
        request = SweepRequest(any_of=Selector(board=self.board), plan=PLAN, priority=priority)
        self.for_any.add(self.ask_for(by, request))

    @rule(by=st.sampled_from("abc"), each=st.sampled_from(Each))
    def submit_each(self, by: str, each: Each) -> None:
        self.clock.forward(0.001)
        request = CampaignRequest(each=each, of=Selector(board=self.board), plan=PLAN)
        with self.store.write() as session:
            campaign_id, _ = submit_campaign(session, request, self.clock(), by=by, key=str(uuid.uuid4()))
        with self.store.session() as session:
            sweeps = campaign(session, campaign_id).sweeps
        assert len(sweeps) == (self.device_count if each is Each.DEVICE else 1)
        assert each is Each.BOARD or {sweep.device_id for sweep in sweeps} == set(self.devices)
        for sweep in sweeps:
            self.taken[sweep.id] = {}
            if each is Each.BOARD:
                self.for_any.add(sweep.id)

    @rule(
        place=PLACES,
        holder=st.sampled_from(["", "a", "b"]),
        begins_s=st.sampled_from([0.0, 5.0, jobs.LEASE_S]),
        lasts_s=st.sampled_from([1.0, jobs.LEASE_S]),
    )
    def book(self, place: int, holder: str, begins_s: float, lasts_s: float) -> None:
        begins = self.clock() + timedelta(seconds=begins_s)
        request = BookingRequest(
            device_id=self.at(place),
            kind=BookingKind.RESERVATION if holder else BookingKind.MAINTENANCE,
            holder=holder,
            starts_at=begins,
            ends_at=begins + timedelta(seconds=lasts_s),
        )
        with suppress(ConflictError), self.store.write() as session:  # there is one of that kind at that time
            self.bookings.append(book(session, request, "a", self.clock()))
        for hold in self.newest.values():  # whoever has the device is told whether to leave it
            if hold.device_id == request.device_id and not hold.let_go:
                self.beat(hold)

    @precondition(lambda self: self.bookings)
    @rule(data=st.data())
    def unbook(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.bookings))
        self.bookings.remove(one)
        with self.store.write() as session:
            unbook(session, one.id, "a", self.clock(), may_all=True)

    def may_begin(self, device_id: str, job: JobRecord) -> bool:
        now = self.clock()
        with self.store.session() as session:
            expected_s = session.scalar(select(JobRow.expected_s).where(JobRow.id == job.id))
        return all(
            one.holder == job.submitter or now + timedelta(seconds=expected_s) <= one.starts_at
            for one in self.bookings
            if one.device_id == device_id and one.ends_at > now
        )

    def must_leave(self, hold: Hold) -> bool:
        now = self.clock()
        with self.store.session() as session:
            by = queries.sweep(session, hold.lease.sweep_id).submitter
        return any(
            one.device_id == hold.device_id and one.starts_at <= now < one.ends_at and one.holder != by
            for one in self.bookings
        )

    @rule(place=PLACES)
    def lease(self, place: int) -> None:
        known = len(self.holds)
        super().lease(place)
        for hold in self.holds[known:]:
            first = self.whose.setdefault(hold.lease.sweep_id, hold.device_id)
            assert first == hold.device_id, "what one device took is another's now"
            others = [device_id for device_id in self.devices if device_id != first]
            assert all(job.sweep_id != hold.lease.sweep_id for one in others for job in self.queue(one))

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), place=PLACES)
    def meddle(self, data: st.DataObject, place: int) -> None:
        """A device uses what another one was told; whatever it says, it changes nothing."""
        hold, device_id = data.draw(st.sampled_from(self.holds)), self.at(place)
        if device_id == hold.device_id:
            return
        with pytest.raises(ForbiddenError), self.store.write() as session:
            data.draw(st.sampled_from([jobs.heartbeat, jobs.release]))(session, device_id, *fence(hold), self.clock())
        with pytest.raises(ForbiddenError):
            upload(self.store, device_id, hold.lease, make_run(hold.lease.sweep_id, PLAN.points()[0], 0))

    def teardown(self) -> None:
        """As of one device, once nothing is booked any more."""
        for one in self.bookings:
            self.clock.forward(max(0.0, (one.ends_at - self.clock()).total_seconds()))
        super().teardown()
        assert {job.sweep_id for job in self.all_jobs()} == set(self.taken)
