"""The months of chunks: partitions on PostgreSQL, nothing to be seen on SQLite, and one copy of a chunk on both."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone

import pytest
from alembic import command
from sqlalchemy import inspect, text
from sqlalchemy.exc import IntegrityError, OperationalError

from powerlab.domain.run import Run
from powerlab.protocol.messages import Lease
from powerlab.store import Store, open_store
from powerlab.store.database import changing_tables
from powerlab.store.errors import ConflictError
from powerlab.store.maintenance import partitions, worker
from powerlab.store.maintenance.partitions import drop_months, make_ahead, make_months, month_of
from powerlab.store.reads import queries
from powerlab.store.schema import alembic_config
from server_examples import Clock, make_trace, runs_of
from store_writing import take, upload, upload_trace

MONTH_S = 31 * 24 * 3600
CHUNKS = 4
"""What a trace of 1000 samples is sent in."""


def months(store: Store) -> dict[str, int]:
    """Return how many chunks lie in each partition that holds some; on SQLite in the one table."""
    with store.session() as session:
        if store.engine.dialect.name == "sqlite":
            names = ["trace_chunk"]
        else:
            names = [*partitions.partitions(session.connection()), "trace_chunk_default"]
        counts = {name: session.scalar(text(f"SELECT count(*) FROM {name}")) or 0 for name in names}
    return {name.removeprefix("trace_chunk_"): count for name, count in counts.items() if count}


def expected(store: Store, **wanted: int) -> dict[str, int]:
    """Return what :func:`months` says where chunks lie in these months; on SQLite they all lie together."""
    if store.engine.dialect.name == "sqlite":
        return {"trace_chunk": sum(wanted.values())}
    return {name.removeprefix("m"): count for name, count in wanted.items()}


@pytest.fixture
def send(store: Store, device_id: str, sweep_id: str) -> Callable[[int], list[bool]]:
    """Upload one of the sweep's runs with its trace, or the trace again."""
    held, runs = take(store, device_id), runs_of(sweep_id)

    def send_run(number: int) -> list[bool]:
        upload(store, device_id, held, runs[number])
        return upload_trace(store, device_id, held, runs[number].id, make_trace(seed=number))

    return send_run


@pytest.fixture
def old(store: Store, clock: Clock, device_id: str, sweep_id: str) -> tuple[Lease, Run, Run]:
    """A run of January 2026 and one of April, whose month nobody has made, both with traces."""
    held = take(store, device_id)
    first, second = runs_of(sweep_id)[:2]
    upload(store, device_id, held, first)
    upload_trace(store, device_id, held, first.id, make_trace())
    clock.forward(3 * MONTH_S)
    upload(store, device_id, held, second)
    upload_trace(store, device_id, held, second.id, make_trace(seed=1))
    return held, first, second


def test_months_begin_in_utc_also_at_a_years_end() -> None:
    last = datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert month_of(last) == datetime(2026, 12, 1, tzinfo=UTC)
    assert month_of(last, 1) == month_of(last + timedelta(microseconds=1)) == datetime(2027, 1, 1, tzinfo=UTC)
    assert month_of(last, -12) == datetime(2025, 12, 1, tzinfo=UTC)
    assert month_of(datetime(2027, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))) == month_of(last)


def test_the_years_end_is_midnight_in_utc_whatever_zone_a_database_has(address: str, clock: Clock) -> None:
    if not address.startswith("postgresql"):
        return  # no partitions, and no zones either
    clock.now = datetime(2026, 12, 31, 23, 0, tzinfo=UTC)
    store = open_store(f"{address}&options=-c%20timezone%3DPacific/Auckland", clock)
    with store.session() as session:
        assert session.scalar(text("SHOW timezone")) == "Pacific/Auckland"
        names = list(partitions.partitions(session.connection()))
        assert names[-3:] == ["trace_chunk_202612", "trace_chunk_202701", "trace_chunk_202702"]
        found = session.scalars(
            text("SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 'trace_chunk_202701'")
        ).one()
    store.close()
    elsewhere = open_store(address, clock)
    with elsewhere.session() as session:
        bounds = [datetime.fromisoformat(bound) for bound in found.split("'")[1::2]]
        assert bounds == [datetime(2027, 1, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)]
    elsewhere.close()


def test_chunks_on_both_sides_of_a_years_end_lie_in_their_months(
    store: Store, clock: Clock, send: Callable[[int], list[bool]]
) -> None:
    clock.now = datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    make_ahead(store.engine, clock())
    assert all(send(0))
    clock.forward(1e-6)
    assert all(send(1))
    assert months(store) == expected(store, m202612=CHUNKS, m202701=CHUNKS)


def test_months_are_made_ahead_once_and_take_what_came_before_them(store: Store, old: tuple[Lease, Run, Run]) -> None:
    assert months(store) == expected(store, m202601=CHUNKS, default=CHUNKS)
    made = [make_ahead(store.engine, store.clock()) for _ in range(2)]
    if store.engine.dialect.name == "postgresql":
        assert made == [[f"trace_chunk_2026{month:02}" for month in (4, 5, 6)], []]
    assert months(store) == expected(store, m202601=CHUNKS, m202604=CHUNKS)
    with store.session() as session:
        assert [len(trace.time_ns) for trace in queries.recorded(session, old[2].id)] == [1000]


def test_a_clock_that_jumps_ahead_finds_no_month_and_stores_all_the_same(
    store: Store, clock: Clock, send: Callable[[int], list[bool]]
) -> None:
    today = clock()
    clock.now = datetime(2031, 7, 1, tzinfo=UTC)
    assert all(send(0))
    clock.now = today
    assert all(send(1))
    assert not any(send(0))
    assert months(store) == expected(store, m202601=CHUNKS, default=CHUNKS)
    make_months(store.engine, [datetime(2031, 7, 1, tzinfo=UTC)])
    assert not any(send(0))
    assert months(store) == expected(store, m202601=CHUNKS, m203107=CHUNKS)


def test_late_chunks_lie_in_the_month_of_their_run_and_once(
    store: Store, device_id: str, old: tuple[Lease, Run, Run]
) -> None:
    """Now it is April, and January's chunks are sent again, in a month whose index knows nothing of them."""
    held, first, _ = old
    make_ahead(store.engine, store.clock())
    assert not any(upload_trace(store, device_id, held, first.id, make_trace()))
    with pytest.raises(ConflictError, match="other bytes"):
        upload_trace(store, device_id, held, first.id, make_trace(seed=3))
    assert months(store) == expected(store, m202601=CHUNKS, m202604=CHUNKS)


@pytest.mark.parametrize("received_at", ["received_at", "'2026-04-05 00:00:00'", "'2029-01-01 00:00:00'"])
def test_the_database_itself_keeps_one_copy_of_a_chunk(
    store: Store, old: tuple[Lease, Run, Run], received_at: str
) -> None:
    """In its own month the place is taken; another month, made or not, is not that of its run."""
    columns = (
        "run_id, rail_id, part, position, t_first_ns, t_last_ns, sample_count, value_min, value_max, value_sum, "
        "read_cost_ns, codec, sha256, payload"
    )
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(
            text(f"INSERT INTO trace_chunk ({columns}, received_at) SELECT {columns}, {received_at} FROM trace_chunk")
        )


def test_servers_that_make_the_same_months_at_once_make_them_once(store: Store, old: tuple[Lease, Run, Run]) -> None:
    made: list[str] = []
    errors: list[BaseException] = []
    start = threading.Barrier(4)

    def serve() -> None:
        start.wait()
        try:
            made.extend(make_ahead(store.engine, store.clock()))
        except BaseException as error:
            errors.append(error)

    servers = [threading.Thread(target=serve) for _ in range(4)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    assert errors == []
    if store.engine.dialect.name == "postgresql":
        assert sorted(made) == [f"trace_chunk_2026{month:02}" for month in (4, 5, 6)]
    assert months(store) == expected(store, m202601=CHUNKS, m202604=CHUNKS)


@contextmanager
def reading(store: Store) -> Iterator[None]:
    """Read chunks for a long time."""
    with store.session() as session:
        assert session.scalar(text("SELECT count(*) FROM trace_chunk"))
        yield


def test_a_month_that_somebody_reads_goes_later_and_nobody_waits(
    store: Store, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    if store.engine.dialect.name != "postgresql":
        return
    monkeypatch.setattr(partitions, "TRIES", 3)
    logged: list[str] = []
    monkeypatch.setattr(worker._log, "warning", lambda text, *words: logged.append(text % words))
    before = month_of(store.clock())
    with reading(store):
        with pytest.raises(OperationalError, match="lock timeout"):
            drop_months(store.engine, before)
        with pytest.raises(OperationalError, match="lock timeout"):
            make_ahead(store.engine, store.clock())
        worker.look_after(store, {})
        assert months(store) == expected(store, m202601=CHUNKS, default=CHUNKS)
    assert "months were not made ahead" in logged[0]
    assert drop_months(store.engine, before) == CHUNKS
    assert drop_months(store.engine, before) == 0
    assert months(store) == {"default": CHUNKS}


def test_a_database_whose_months_cannot_be_made_now_is_opened(
    address: str, store: Store, clock: Clock, old: tuple[Lease, Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "TRIES", 1)
    with reading(store):
        again = open_store(address, clock)
    with again.session() as session:
        assert len(queries.recorded(session, old[2].id)) == 1
    again.close()


@pytest.mark.campaign
@pytest.mark.parametrize("revision", ["0017", "0002"])
def test_populated_tables_go_down_and_up_again(store: Store, old: tuple[Lease, Run, Run], revision: str) -> None:
    """Chunks of a month, of one that was made late, and of none."""
    for there in (revision, "head"):
        with changing_tables(store.engine) as connection:
            (command.upgrade if there == "head" else command.downgrade)(alembic_config(connection), there)
            assert ("retirement" in inspect(connection).get_table_names()) == (there == "head")
            assert connection.scalar(text("SELECT count(*) FROM trace_chunk")) == 2 * CHUNKS
    assert months(store) == expected(store, m202601=CHUNKS, m202604=CHUNKS)
    with store.session() as session:
        for seed, run in enumerate(old[1:]):
            (trace,) = queries.recorded(session, run.id)
            assert trace.value.tolist() == make_trace(seed=seed).value.tolist()


def test_identifiers_go_on_where_they_ended_before_the_change(
    store: Store, device_id: str, sweep_id: str, old: tuple[Lease, Run, Run]
) -> None:
    for revision in ("0017", "head"):
        with changing_tables(store.engine) as connection:
            (command.upgrade if revision == "head" else command.downgrade)(alembic_config(connection), revision)
    third = runs_of(sweep_id)[2]
    upload(store, device_id, old[0], third)
    assert all(upload_trace(store, device_id, old[0], third.id, make_trace(seed=2)))
    with store.session() as session:
        ids = session.scalars(text("SELECT id FROM trace_chunk")).all()
    assert len(ids) == len(set(ids)) == 3 * CHUNKS
