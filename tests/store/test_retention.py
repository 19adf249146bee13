"""What is kept for some months only: it goes whole, is said to be gone, and does not come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, date, datetime

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, Lease
from powerlab.store import Store
from powerlab.store.errors import RetiredError
from powerlab.store.maintenance import partitions, worker
from powerlab.store.maintenance.retention import retire
from powerlab.store.maintenance.retired import check_events_kept, last_retired_event, traces_kept_since, why_no_traces
from powerlab.store.maintenance.worker import kept_up, look_after
from powerlab.store.reads import queries
from powerlab.store.reads.audit_log import EventFilter as AuditFilter
from powerlab.store.reads.audit_log import list_events
from powerlab.store.reads.events import EventFilter, events_after, newest_event
from powerlab.store.reads.run_audit import audit_run
from powerlab.store.reads.trace_stream import chosen_run, stream_chunks
from powerlab.store.tables import EventRow, RetirementRow, TraceChunkRow
from powerlab.store.tables.retirement import Kind
from powerlab.store.writes.runs import store_chunk
from server_examples import Clock, make_trace, runs_of
from store_writing import take, upload, upload_trace

MONTH_S = 31 * 24 * 3600
CHUNKS = 4
"""What a trace of 1000 samples is sent in."""
FEBRUARY = datetime(2026, 2, 1, tzinfo=UTC)


def count(store: Store, table: str = "trace_chunk") -> int:
    with store.session() as session:
        return session.scalar(text(f"SELECT count(*) FROM {table}")) or 0


@pytest.fixture
def old(store: Store, clock: Clock, device_id: str, sweep_id: str) -> tuple[Lease, Run, Run]:
    """A run of January 2026 and one of April, both with traces; the lease is still held."""
    held = take(store, device_id)
    first, second = runs_of(sweep_id)[:2]
    upload(store, device_id, held, first)
    upload_trace(store, device_id, held, first.id, make_trace())
    clock.forward(3 * MONTH_S)
    look_after(store, {})
    upload(store, device_id, held, second)
    upload_trace(store, device_id, held, second.id, make_trace(seed=1))
    return held, first, second


def test_old_traces_go_by_whole_months_and_are_said_to_be_gone(store: Store, old: tuple[Lease, Run, Run]) -> None:
    _, first, second = old
    assert retire(store, Kind.TRACES, 3).row_count == 0
    gone = retire(store, Kind.TRACES, 2)
    assert (gone.row_count, gone.before) == (CHUNKS, FEBRUARY)
    with store.session() as session:
        assert queries.run(session, first.id) == first
        assert queries.recorded(session, first.id) == []
        assert len(queries.recorded(session, second.id)) == 1
        assert why_no_traces(session, second.id) == ""
        for ask in (audit_run, lambda session, run_id: chosen_run(session, None, run_id)):
            with pytest.raises(RetiredError, match=r"before 01 February 2026 are no longer kept \(removed on 05 April"):
                ask(session, first.id)
        told = list_events(session, AuditFilter(action="retire traces"))
        assert {one.run_id for one in stream_chunks(session, first.sweep_id, None)} == {second.id}
    assert [(one.actor, one.subject, one.detail) for one in told] == [
        ("command line", "2026-02-01", {"rows": CHUNKS, "files": 0})
    ]
    assert retire(store, Kind.TRACES, 2).row_count == 0


def test_what_was_retired_stays_so_however_long_is_kept_from_now_on(
    store: Store, clock: Clock, old: tuple[Lease, Run, Run]
) -> None:
    retire(store, Kind.TRACES, 2)
    at = clock()
    clock.forward(3600)
    assert retire(store, Kind.TRACES, 24).row_count == 0
    with store.session() as session:
        assert traces_kept_since(session) == FEBRUARY
        assert session.get_one(RetirementRow, "traces").retired_at == at


def test_a_chunk_that_is_sent_again_after_its_month_went_is_not_stored(
    store: Store, device_id: str, old: tuple[Lease, Run, Run]
) -> None:
    held, first, second = old
    retire(store, Kind.TRACES, 2)
    assert not any(upload_trace(store, device_id, held, first.id, make_trace()))
    assert not any(upload_trace(store, device_id, held, first.id, make_trace(seed=7)))
    assert not any(upload_trace(store, device_id, held, second.id, make_trace(seed=1)))
    assert count(store) == CHUNKS


def test_what_lies_in_no_month_goes_too(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    clock.forward(6 * MONTH_S)
    upload(store, device_id, held, run)
    upload_trace(store, device_id, held, run.id, make_trace())
    clock.forward(3 * MONTH_S)
    assert retire(store, Kind.TRACES, 1).row_count == CHUNKS
    assert count(store) == 0


def test_an_upload_under_way_is_neither_cut_off_nor_left_over(
    store: Store, device_id: str, old: tuple[Lease, Run, Run]
) -> None:
    """Retention begins while a late chunk of the old month is stored and not yet committed."""
    held, first, _ = old
    done: list[object] = []

    def remove() -> None:
        try:
            done.append(retire(store, Kind.TRACES, 2))
        except BaseException as error:
            done.append(error)

    remover = threading.Thread(target=remove)
    late = list(split(make_trace(count=1300), 300))[CHUNKS]
    with store.write() as session:
        assert store_chunk(session, device_id, first.id, ChunkUpload(fencing_token=held.fencing_token, chunk=late))
        session.flush()
        remover.start()
        if store.engine.dialect.name == "postgresql":  # SQLite lets nobody else write at all
            while not count(store, "retirement"):
                assert remover.is_alive(), done
    remover.join()
    assert [getattr(one, "row_count", one) for one in done] in ([CHUNKS], [CHUNKS + 1])
    with store.session() as session:
        assert session.scalars(select(TraceChunkRow.id).where(TraceChunkRow.run_id == first.id)).all() == []


def test_a_month_waits_for_an_upload_that_has_looked_and_not_yet_stored(
    store: Store, device_id: str, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has read its month before it asked, so that the month cannot go between the question and the chunk."""
    if store.engine.dialect.name != "postgresql":
        return
    held, first, _ = old
    monkeypatch.setattr(partitions, "TRIES", 2)
    late = list(split(make_trace(count=1300), 300))[CHUNKS]

    def after_the_question(session: object, run_id: str) -> str:
        with pytest.raises(OperationalError, match="lock timeout"):
            retire(store, Kind.TRACES, 2)
        return ""

    with monkeypatch.context() as patch:
        patch.setattr("powerlab.store.writes.runs.why_no_traces", after_the_question)
        with store.write() as session:
            message = ChunkUpload(fencing_token=held.fencing_token, chunk=late)
            assert store_chunk(session, device_id, first.id, message)
    assert retire(store, Kind.TRACES, 2).row_count == CHUNKS + 1
    assert count(store) == CHUNKS


def test_servers_that_retire_at_once_do_it_once(store: Store, old: tuple[Lease, Run, Run]) -> None:
    found: list[object] = []
    start = threading.Barrier(3)

    def serve() -> None:
        start.wait()
        try:
            found.append(retire(store, Kind.TRACES, 2).row_count)
        except BaseException as error:
            found.append(error)

    servers = [threading.Thread(target=serve) for _ in range(3)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert sorted(found, key=str) == [0, 0, CHUNKS]
    assert count(store) == CHUNKS


def test_events_go_up_to_a_number_and_readers_hear_of_it(store: Store, old: tuple[Lease, Run, Run]) -> None:
    with store.session() as session:
        before, _ = events_after(session, 0, EventFilter(), 100)
    ((kept,), gone) = ([one for one in before if one.at >= FEBRUARY], [one for one in before if one.at < FEBRUARY])
    assert len(gone) > 2
    assert retire(store, Kind.EVENTS, 2).row_count == len(gone)
    with store.session() as session:
        assert last_retired_event(session) == gone[-1].id
        assert events_after(session, 0, EventFilter(), 100)[0] == [kept]
        check_events_kept(session, gone[-1].id)
        with pytest.raises(RetiredError, match=f"up to number {gone[-1].id} are no longer kept"):
            check_events_kept(session, gone[-2].id)
    assert retire(store, Kind.EVENTS, 2).row_count == 0
    with store.session() as session:
        assert last_retired_event(session) == gone[-1].id


def test_the_newest_event_stays_so_that_numbers_go_on(
    store: Store, clock: Clock, device_id: str, old: tuple[Lease, Run, Run]
) -> None:
    clock.forward(12 * MONTH_S)
    with store.session() as session:
        newest = newest_event(session)
    retire(store, Kind.EVENTS, 1)
    assert count(store, "event") == 1
    upload(store, device_id, old[0], runs_of(old[1].sweep_id)[2])
    with store.session() as session:
        (event,) = events_after(session, newest, EventFilter(), 10)[0]
        assert event.id > newest
        check_events_kept(session, newest)


def test_nothing_is_left_out_behind_an_event_that_is_kept(store: Store, clock: Clock, device_id: str) -> None:
    """A server whose clock was wrong leaves an event of the future; what comes after it stays as long as it does."""
    with store.write() as session:
        for at in (clock(), datetime(2030, 1, 1, tzinfo=UTC), clock()):
            session.add(EventRow(at=at, kind="device.seen", device_id=device_id, detail=""))
            session.flush()
    clock.forward(12 * MONTH_S)
    retire(store, Kind.EVENTS, 1)
    with store.session() as session:
        assert [event.at.year for event in events_after(session, 0, EventFilter(), 10)[0]] == [2030, 2026]


def test_an_empty_database_has_nothing_to_retire(store: Store) -> None:
    for kind in Kind:
        assert retire(store, kind, 1).row_count == 0
    with store.session() as session:
        check_events_kept(session, 0)


def test_the_log_goes_where_that_is_asked_for_and_says_so(store: Store, old: tuple[Lease, Run, Run]) -> None:
    before = count(store, "audit_event")
    assert before > 0
    look_after(store, {Kind.TRACES: 1, Kind.EVENTS: 1})
    assert count(store, "audit_event") == before + 2  # what was removed is written down
    look_after(store, {Kind.AUDIT: 1})
    with store.session() as session:
        told = list_events(session, AuditFilter())
    assert [(one.actor, one.action) for one in told] == [
        *(("server", f"retire {what}") for what in ("audit", "events", "traces"))
    ]
    assert told[0].detail == {"rows": before, "files": 0}


@pytest.mark.parametrize("length", [0, -1, 10_000])
def test_nothing_is_kept_for_no_time(store: Store, length: int) -> None:
    with pytest.raises(PowerlabError, match="1 to 1200 months"):
        retire(store, Kind.TRACES, length)


def test_many_rows_go_in_several_transactions(
    store: Store, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("powerlab.store.maintenance.retention.BATCH", 2)
    before = count(store, "audit_event")
    assert retire(store, Kind.AUDIT, 1).row_count == before
    assert retire(store, Kind.TRACES, 2).row_count == CHUNKS


def test_a_server_looks_after_its_database_at_once_and_again(
    store: Store, clock: Clock, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = threading.Event()
    monkeypatch.setattr(worker._log, "warning", lambda *_: failed.set())
    with kept_up(store, {Kind.TRACES: 2}, period_s=0.01):
        _until(lambda: count(store) == CHUNKS)
        for month in (date(2026, 3, 1), date(2026, 4, 1), date(2026, 5, 1)):
            clock.forward(MONTH_S)
            _until(lambda month=month: _kept_since(store).date() == month)
        _until(lambda: count(store) == 0)
        monkeypatch.setattr(worker, "retire", _away)
        assert failed.wait(60)


def test_a_server_whose_clock_jumps_ahead_removes_nothing_until_somebody_says_so(
    store: Store, clock: Clock, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged: list[str] = []
    monkeypatch.setattr(worker._log, "warning", lambda text, *words: logged.append(text % words))
    look_after(store, {Kind.TRACES: 2})
    today = clock()
    clock.forward(120 * MONTH_S)
    look_after(store, {Kind.TRACES: 2})
    assert "and the last month of traces was retired on 05 April 2026; set it right" in logged[0]
    assert "`powerlab database retire --keep-traces 2`" in logged[0]
    assert (count(store), _kept_since(store)) == (CHUNKS, FEBRUARY)
    clock.now = today
    look_after(store, {Kind.TRACES: 2})
    clock.forward(12 * MONTH_S)
    assert retire(store, Kind.TRACES, 2).row_count == CHUNKS
    look_after(store, {Kind.TRACES: 2})
    assert len(logged) == 1


@pytest.mark.parametrize("months", [12, 1])
def test_a_server_is_told_to_keep_more_or_less_and_asks_nobody(
    store: Store, clock: Clock, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch, months: int
) -> None:
    monkeypatch.setattr(worker._log, "warning", lambda text, *words: pytest.fail(text % words))
    look_after(store, {Kind.TRACES: 2})
    clock.forward(MONTH_S)
    look_after(store, {Kind.TRACES: months})
    for _ in range(14):
        clock.forward(MONTH_S)
        look_after(store, {Kind.TRACES: months})
    assert count(store) == 0


def _kept_since(store: Store) -> datetime:
    with store.session() as session:
        since = traces_kept_since(session)
    assert since is not None
    return since


def _away(*_: object, **__: object) -> None:
    raise PowerlabError("the files are away")


def _until(there: Callable[[], bool]) -> None:
    while not there():
        threading.Event().wait(0.01)
