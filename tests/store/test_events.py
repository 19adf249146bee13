"""Events: one for everything that happened, in the order in which it became visible, none missed and none twice."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from powerlab.client.events import Block, blocks
from powerlab.protocol.events import Event, EventKind
from powerlab.protocol.messages import Finish
from powerlab.store import Store, open_store
from powerlab.store import events as store_events
from powerlab.store.reads.events import EventFilter, events_after, newest_event
from powerlab.store.tables import DeviceRow
from powerlab.store.writes import control, jobs
from server_examples import Clock, runs_of
from store_writing import take, upload

ALL = EventFilter()


def happened(store: Store, after: int = 0, request: EventFilter = ALL, limit: int = 1000) -> list[Event]:
    with store.session() as session:
        return events_after(session, after, request, limit)[0]


def add_device(store: Store, name: str) -> None:
    with store.write() as session:
        session.add(DeviceRow(id=name, name=name, enrolled_at=store.clock(), seen_at=store.clock()))


def test_a_sweeps_life_is_told_in_order(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    held = take(store, device_id)
    first, second, *_ = runs_of(sweep_id)
    clock.forward(1)
    assert upload(store, device_id, held, first)
    assert not upload(store, device_id, held, first)  # the same again is no event
    with store.write() as session:
        jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock())
    for waits in ("it is hot", "it is hot", "it is cooler", ""):  # said twice, it is news once
        with store.write() as session:
            jobs.heartbeat(session, device_id, held.job_id, held.fencing_token, clock(), waits=waits)
    with store.write() as session:
        jobs.release(session, device_id, held.job_id, held.fencing_token, clock())
    held = take(store, device_id)
    assert upload(store, device_id, held, second)
    with store.write() as session:
        message = Finish(fencing_token=held.fencing_token, state="failed", detail="it rained")
        jobs.finish(session, device_id, held.job_id, message, clock())
    found = happened(store)
    assert [(event.kind, event.run_id, event.detail) for event in found] == [
        (EventKind.DEVICE_ENROLLED, None, "board-1"),
        (EventKind.SWEEP_CREATED, None, ""),
        (EventKind.SWEEP_STARTED, None, ""),
        (EventKind.RUN_STORED, first.id, "flagged"),
        (EventKind.SWEEP_WAITING, None, "it is hot"),
        (EventKind.SWEEP_WAITING, None, "it is cooler"),
        (EventKind.SWEEP_WAITING, None, ""),
        (EventKind.SWEEP_QUEUED, None, ""),
        (EventKind.SWEEP_STARTED, None, ""),
        (EventKind.RUN_STORED, second.id, "flagged"),
        (EventKind.SWEEP_FAILED, None, "it rained"),
    ]
    assert {event.device_id for event in found} == {device_id}
    assert {event.sweep_id for event in found[1:]} == {sweep_id}
    assert [event.id for event in found] == sorted({event.id for event in found})
    assert found[-1].at == clock()


def test_pauses_and_cancellations_are_told(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    before = len(happened(store))
    for change in (control.pause, control.pause, control.resume, control.cancel):
        with store.write() as session:
            change(session, sweep_id, "anna", clock())
    assert [(event.kind, event.detail) for event in happened(store)[before:]] == [
        (EventKind.SWEEP_PAUSED, "paused by anna"),
        (EventKind.SWEEP_QUEUED, ""),
        (EventKind.SWEEP_CANCELLED, "cancelled by anna"),
    ]


def test_what_is_undone_did_not_happen(store: Store, device_id: str) -> None:
    before = happened(store)
    with suppress(ZeroDivisionError), store.write() as session:
        session.add(DeviceRow(id="x", name="x", enrolled_at=store.clock(), seen_at=store.clock()))
        session.flush()
        raise ZeroDivisionError
    with pytest.raises(IntegrityError), store.write() as session:
        session.add(DeviceRow(id="y", name="board-1", enrolled_at=store.clock(), seen_at=store.clock()))
    assert happened(store) == before


def test_filters_and_pages(store: Store, device_id: str, sweep_id: str, other_id: str) -> None:
    everything = happened(store)
    assert happened(store, request=EventFilter(device_id=other_id)) == [
        event for event in everything if event.device_id == other_id
    ]
    of_sweep = EventFilter(sweep_id=sweep_id)
    assert [event.kind for event in happened(store, request=of_sweep)] == [EventKind.SWEEP_CREATED]
    with store.session() as session:
        assert newest_event(session) == everything[-1].id
        found, behind = events_after(session, 0, of_sweep, 1000)
        assert behind == everything[-1].id  # what was passed over need not be looked at again
        found, behind = events_after(session, 0, ALL, 2)
        assert (found, behind) == (everything[:2], everything[1].id)
        assert events_after(session, behind, ALL, 1000)[0] == everything[2:]
        assert events_after(session, 2**62, ALL, 1000) == ([], 2**62)


def test_a_later_event_waits_for_an_earlier_one_to_be_visible(store: Store) -> None:
    """Without the lock the second would be read while the first, with the smaller id, is still to come."""
    second = threading.Thread(target=add_device, args=(store, "second"))
    with store.write() as session:
        session.add(DeviceRow(id="first", name="first", enrolled_at=store.clock(), seen_at=store.clock()))
        store_events.publish(session, store.clock())  # its id is taken; the commit is still to come
        second.start()
        if store.engine.dialect.name == "postgresql":
            _wait_for_one_that_waits(store)
        assert happened(store) == []
    second.join()
    assert [event.device_id for event in happened(store)] == ["first", "second"]


def _wait_for_one_that_waits(store: Store) -> None:
    while True:
        with store.session() as session:
            waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            if session.scalar(waiting):
                return


@pytest.mark.parametrize("writers", [6])
def test_readers_miss_nothing_while_many_write(store: Store, address: str, writers: int) -> None:
    """Several writers through two pools, as two replicas have, and two readers that follow."""
    replica = open_store(address)
    per_writer, errors = 12, []
    done = threading.Event()
    seen: list[list[str]] = [[], []]

    def write(number: int) -> None:
        try:
            for count in range(per_writer):
                add_device((store, replica)[number % 2], f"board {number} {count}")
        except Exception as error:
            errors.append(error)

    def read(number: int) -> None:
        after = 0
        while True:
            last = done.is_set()
            with (store, replica)[number].session() as session:
                found, after = events_after(session, after, ALL, 3)
            seen[number] += [event.detail for event in found]
            if last and not found:
                return

    writing = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    reading = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for thread in (*reading, *writing):
        thread.start()
    for thread in writing:
        thread.join()
    done.set()
    for thread in reading:
        thread.join()
    replica.close()
    assert errors == []
    assert sorted(seen[0]) == sorted(
        f"board {number} {count}" for number in range(writers) for count in range(per_writer)
    )
    assert seen[0] == seen[1]


@pytest.mark.parametrize("statement", ["UPDATE event SET kind = 'rumour'", "UPDATE event SET device_id = 'nobody'"])
def test_the_database_itself_refuses_nonsense(store: Store, device_id: str, statement: str) -> None:
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=20)


@given(st.lists(st.tuples(LINES, st.integers(0, 99)), max_size=5), st.data())
def test_a_stream_is_taken_apart_as_it_was_put_together(parts: list[tuple[str, int]], data: Any) -> None:
    stream = ["retry: 2000", "id: 7", ""]
    for words, number in parts:
        stream += data.draw(st.sampled_from([[], [": nothing new"], ["event: x"], ["data"]]))
        stream += [f"data: {words}", f"id: {number}", ""]
    found = list(blocks([*stream, "data: cut off"]))
    assert found[0] == Block("", "7")
    assert [(one.data.removeprefix("\n"), one.last_id) for one in found[1:]] == [
        (words, str(number)) for words, number in parts
    ]
