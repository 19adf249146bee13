"""Whose a device is when; on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text, update
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Selector
from powerlab.protocol.bookings import BookingKind, BookingRecord, BookingRequest
from powerlab.protocol.messages import Lease, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, ForbiddenError, NotFoundError
from powerlab.store.reads.bookings import BookingFilter, list_bookings
from powerlab.store.tables import BookingRow, JobRow
from powerlab.store.writes import bookings, jobs
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock
from store_writing import take
from tests.store.test_races import at_once

SMALL = replace(PLAN, threads=(1,), batch_sizes=(1,), modes=("current",))
HOUR = 3600.0


def book(store: Store, device_id: str, start_s: float, end_s: float, holder: str | None = None) -> BookingRecord:
    """Reserve a device for a holder, or without one maintain it, from and to so many seconds from now."""
    now = store.clock()
    request = BookingRequest(
        device_id=device_id,
        kind=BookingKind.MAINTENANCE if holder is None else BookingKind.RESERVATION,
        starts_at=now + timedelta(seconds=start_s),
        ends_at=now + timedelta(seconds=end_s),
        holder=holder or "",
    )
    with store.write() as session:
        return bookings.book(session, request, "ada", now)


def submit(store: Store, device_id: str, by: str, **request: Any) -> str:
    request = SweepRequest(**{"device_id": device_id, "plan": SMALL, **request})
    with store.write() as session:
        return create_sweep(session, request, store.clock(), by=by)


def lease(store: Store, device_id: str) -> Lease | None:
    with store.session() as session:
        waits = jobs.is_waiting(session, device_id, store.clock())
    with store.write() as session:
        held = jobs.lease(session, device_id, store.clock())
    assert (held is not None) == waits
    return held


def expected_s(store: Store) -> float:
    with store.session() as session:
        return float(session.scalar(text("SELECT max(expected_s) FROM job")))


def test_nothing_is_given_out_during_maintenance(store: Store, clock: Clock, device_id: str, other_id: str) -> None:
    submit(store, device_id, "ada")
    other = submit(store, other_id, "ada")
    book(store, device_id, -HOUR, HOUR)
    assert lease(store, device_id) is None
    assert lease(store, other_id).sweep_id == other
    clock.forward(HOUR)
    assert lease(store, device_id) is not None


def test_a_reserved_device_is_its_holders(store: Store, clock: Clock, device_id: str) -> None:
    submit(store, device_id, "bob", priority=9)
    adas = submit(store, device_id, "ada")
    book(store, device_id, 0, HOUR, "ada")
    assert lease(store, device_id).sweep_id == adas
    assert lease(store, device_id) is None
    clock.forward(HOUR)
    assert lease(store, device_id) is not None


def test_maintenance_goes_before_a_reservation(store: Store, device_id: str) -> None:
    submit(store, device_id, "ada")
    book(store, device_id, 0, HOUR, "ada")
    assert book(store, device_id, 0, HOUR).holder is None
    assert lease(store, device_id) is None


@pytest.mark.parametrize("holder", [None, "bob"])
def test_what_would_run_into_a_booking_is_not_begun(store: Store, device_id: str, holder: str | None) -> None:
    submit(store, device_id, "ada")
    needed_s = expected_s(store)
    made = book(store, device_id, needed_s - 1, HOUR, holder)
    assert lease(store, device_id) is None
    with store.write() as session:
        bookings.unbook(session, made.id, "ada", store.clock(), may_all=False)
    book(store, device_id, needed_s, HOUR, holder)
    assert lease(store, device_id) is not None


def test_the_holder_may_begin_before_a_reservation(store: Store, device_id: str) -> None:
    adas = submit(store, device_id, "ada")
    submit(store, device_id, "bob")
    book(store, device_id, 1, HOUR, "ada")
    assert lease(store, device_id).sweep_id == adas
    assert lease(store, device_id) is None


def test_of_a_job_that_says_nothing_of_its_length_nothing_is_known(store: Store, device_id: str) -> None:
    submit(store, device_id, "ada")
    with store.write() as session:
        session.execute(update(JobRow).values(expected_s=None))
    book(store, device_id, 1, HOUR)
    assert lease(store, device_id) is not None


def test_a_sweep_for_any_device_goes_where_nothing_is_booked(store: Store, device_id: str, other_id: str) -> None:
    submit(store, None, "ada", any_of=Selector())
    book(store, device_id, 0, HOUR)
    assert lease(store, device_id) is None
    assert lease(store, other_id) is not None


def test_who_runs_on_into_a_booking_is_sent_away_and_comes_back(store: Store, clock: Clock, device_id: str) -> None:
    submit(store, device_id, "ada")
    held = take(store, device_id)
    fence = (device_id, held.job_id, held.fencing_token)
    book(store, device_id, 10, HOUR, "bob")
    for seconds, state in ((0, SweepState.RUNNING), (10, SweepState.QUEUED)):
        clock.forward(seconds)
        with store.write() as session:
            assert jobs.heartbeat(session, *fence, clock()) is state
    with store.write() as session:
        assert jobs.release(session, *fence, clock()) is SweepState.QUEUED
    assert lease(store, device_id) is None
    clock.forward(HOUR)
    assert lease(store, device_id).sweep_id == held.sweep_id


def test_two_of_a_kind_do_not_overlap(store: Store, device_id: str, other_id: str) -> None:
    first = book(store, device_id, 0, HOUR, "ada")
    with pytest.raises(ConflictError, match=rf"has a reservation for ada .*booking {first.id}"):
        book(store, device_id, HOUR - 1, 2 * HOUR, "bob")
    book(store, device_id, HOUR, 2 * HOUR, "bob")
    book(store, other_id, 0, HOUR, "bob")
    book(store, device_id, 0, HOUR)
    with store.session() as session:
        found = list_bookings(session, BookingFilter(device_id=device_id, kind=BookingKind.RESERVATION))
    assert [one.holder for one in found] == ["ada", "bob"]


def test_of_many_who_book_at_once_one_does(store: Store, device_id: str) -> None:
    found = at_once(4, lambda number: book(store, device_id, 10 * number, HOUR, f"user-{number}"))
    assert sorted(type(one).__name__ for one in found) == ["BookingRecord", *["ConflictError"] * 3]


def test_whose_reservation_it_is_may_remove_it(store: Store, device_id: str) -> None:
    made = book(store, device_id, 0, HOUR, "bob")  # by ada

    def remove(by: str, *, may_all: bool = False) -> None:
        with store.write() as session:
            bookings.unbook(session, made.id, by, store.clock(), may_all=may_all)

    with pytest.raises(ForbiddenError, match="this reservation belongs to bob"):
        remove("cleo")
    remove("bob")
    with pytest.raises(NotFoundError):
        remove("bob")
    made = book(store, device_id, 0, HOUR, "bob")
    remove("cleo", may_all=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ends_at": Clock().now}, "ends before it begins"),
        ({"starts_at": Clock().now - timedelta(2), "ends_at": Clock().now - timedelta(1)}, "over already"),
        ({"starts_at": Clock().now.replace(tzinfo=None)}, "need a zone"),
        ({"kind": BookingKind.MAINTENANCE, "holder": "ada"}, "has no holder"),
        ({"reason": "x" * 201}, "up to 200"),
        ({"device_id": "nothing"}, "no device 'nothing'"),
    ],
)
def test_a_booking_that_cannot_be_is_refused(
    store: Store, clock: Clock, device_id: str, change: dict[str, Any], words: str
) -> None:
    good = {"device_id": device_id, "kind": BookingKind.RESERVATION, "starts_at": clock()}
    request = BookingRequest(**(good | {"ends_at": clock() + timedelta(1)} | change))
    with pytest.raises(PowerlabError, match=words), store.write() as session:
        bookings.book(session, request, "ada", clock())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE booking SET device_id = 'nobody'",
        "UPDATE booking SET kind = 'party'",
        "UPDATE booking SET holder = NULL",
        "UPDATE booking SET kind = 'maintenance'",
        "UPDATE booking SET ends_at = starts_at",
        "UPDATE booking SET starts_at = (SELECT min(starts_at) FROM booking)",
        "UPDATE job SET expected_s = -1",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, device_id: str, sweep_id: str, statement: str) -> None:
    book(store, device_id, 0, HOUR, "ada")
    book(store, device_id, HOUR, 2 * HOUR, "bob")
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


WINDOWS = st.tuples(st.integers(0, 9), st.integers(1, 5), st.sampled_from([None, "ada", "bob"]))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(windows=st.lists(WINDOWS, max_size=5), by=st.sampled_from(["ada", "bob"]), needed=st.integers(1, 4))
def test_no_job_is_given_out_where_a_booking_stands_in_its_way(
    store: Store, device_id: str, windows: list[tuple[int, int, str | None]], by: str, needed: int
) -> None:
    """Every booking is held against every moment of the job, minute by minute."""
    with store.write() as session:
        session.execute(BookingRow.__table__.delete())
    minute, taken = 60.0, []
    for start, length, holder in windows:
        try:
            book(store, device_id, start * minute, (start + length) * minute, holder)
        except ConflictError:
            clash = [one for one in taken if (one[2] is None) == (holder is None)]
            assert any(one[0] < start + length and start < one[0] + one[1] for one in clash)
        else:
            taken.append((start, length, holder))
    sweep_id = submit(store, device_id, by)
    with store.write() as session:
        session.execute(update(JobRow).where(JobRow.sweep_id == sweep_id).values(expected_s=needed * minute))
    others = [one for one in taken if one[2] != by]
    free = not any(start <= moment < start + length for start, length, _ in others for moment in range(needed))
    held = lease(store, device_id)
    assert (held is not None) == free
    with store.write() as session:
        session.execute(update(JobRow).values(state="done", deadline=None, finished_at=store.clock()))
