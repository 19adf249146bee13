"""The migrations make what the models say, and bad addresses are one sentence."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect, select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, RunUpload, SweepRequest
from powerlab.store import Store, open_store
from powerlab.store.database import changing_tables, make_engine
from powerlab.store.reads import queries
from powerlab.store.schema import alembic_config
from powerlab.store.tables import Base, DeviceRow, RunRow, SweepRow
from powerlab.store.writes import control, jobs
from powerlab.store.writes.jobs import lease
from powerlab.store.writes.runs import store_chunk, store_run
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, make_trace, runs_of

pytestmark = pytest.mark.campaign

_PARTITION = re.compile("_([0-9]{6}|default)$")


def is_partition(thing: object, name: str) -> bool:
    """Whether something is a month of a table, or belongs to one."""
    return bool(_PARTITION.search(getattr(getattr(thing, "table", None), "name", name)))


def upgraded(address: str) -> Engine:
    """Return an engine of a database on which every migration ran."""
    engine = make_engine(address)
    with changing_tables(engine) as connection:
        command.upgrade(alembic_config(connection), "head")
    return engine


@pytest.fixture
def migrated(address: str, tmp_path: Path) -> Iterator[Engine]:
    """An empty database on which every migration ran; PostgreSQL's are always so made."""
    engine = upgraded(str(tmp_path / "migrated.db") if address.endswith("powerlab.db") else address)
    yield engine
    engine.dispose()


def test_the_migrations_make_the_models(migrated: Engine) -> None:
    with migrated.connect() as connection:
        options = {"compare_type": True, "include_object": lambda thing, name, *_: not is_partition(thing, name)}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def test_a_new_file_is_as_a_migrated_one(tmp_path: Path) -> None:
    """Whatever SQLite knows of: tables, indexes and triggers, word for word but for the order of columns, and rows."""
    new, migrated = open_store(tmp_path / "new.db").engine, upgraded(str(tmp_path / "migrated.db"))
    made, reached = described(new), described(migrated)
    assert made.keys() == reached.keys()
    for name, words in made.items():
        assert words == reached[name], name
    assert counted(new) == counted(migrated)
    new.dispose()
    migrated.dispose()


def counted(engine: Engine) -> dict[str, int]:
    """Return how many rows the tables hold."""
    with engine.connect() as connection:
        return {name: connection.scalar(text(f"SELECT count(*) FROM {name}")) or 0 for name in Base.metadata.tables}


def described(engine: Engine) -> dict[str, list[str]]:
    """Return the parts of each statement that makes something of an SQLite file."""
    with engine.connect() as connection:
        found = connection.execute(text("SELECT name, coalesce(sql, '') FROM sqlite_master")).all()
    return {name: sorted(part.strip(" )") for part in re.sub(r"[\s\"]+", " ", sql).split(", ")) for name, sql in found}


def test_checks_and_their_names_are_in_the_database(migrated: Engine) -> None:
    """Alembic does not compare CHECKs, so that they are compared here."""
    inspector = inspect(migrated)
    for table in Base.metadata.tables.values():
        wanted = {str(c.name) for c in table.constraints if str(c.name).startswith("ck_")}
        assert {check["name"] for check in inspector.get_check_constraints(table.name)} == wanted


def test_down_and_up_again_on_populated_data(store: Store, device_id: str, sweep_id: str) -> None:
    with store.write() as session:
        held = lease(session, device_id, store.clock())
        store_run(
            session, device_id, RunUpload(fencing_token=held.fencing_token, run=runs_of(sweep_id)[0]), store.clock()
        )
    with changing_tables(store.engine) as connection:
        command.downgrade(alembic_config(connection), "base")
    assert inspect(store.engine).get_table_names() == ["alembic_version"]
    with changing_tables(store.engine) as connection:
        command.upgrade(alembic_config(connection), "head")
    with store.session() as session:
        assert session.scalars(select(RunRow)).all() == []
        there = {name for name in inspect(store.engine).get_table_names() if not _PARTITION.search(name)}
        assert there == {*Base.metadata.tables, "alembic_version"}


def test_runs_and_their_traces_survive_a_change_of_their_tables(store: Store, device_id: str, sweep_id: str) -> None:
    with store.write() as session:
        held = lease(session, device_id, store.clock())
        run = runs_of(sweep_id)[0]
        store_run(session, device_id, RunUpload(fencing_token=held.fencing_token, run=run), store.clock())
        session.flush()
        for chunk in split(make_trace()):
            store_chunk(session, device_id, run.id, ChunkUpload(fencing_token=held.fencing_token, chunk=chunk))
    for revision in ("0002", "head"):
        with changing_tables(store.engine) as connection:
            move = command.upgrade if revision == "head" else command.downgrade
            move(alembic_config(connection), revision)
    with store.session() as session:
        assert queries.run(session, run.id) == run
        (trace,) = queries.recorded(session, run.id)
    assert trace.value.tolist() == make_trace().value.tolist()


def test_sweeps_that_older_tables_do_not_know_become_failed_ones(store: Store, device_id: str) -> None:
    """A paused sweep must not be begun by an older powerlab, which knows no pause; every other one stays as it was."""
    states = {}
    for number, change in enumerate((None, control.pause, control.cancel, control.pause)):
        with store.write() as session:
            request = SweepRequest(device_id=device_id, plan=PLAN, priority=number)
            sweep_id = create_sweep(session, request, store.clock(), key=f"key {number}")
            session.flush()
            if number == 3:  # paused while it is held
                jobs.lease_sweep(session, sweep_id, store.clock(), 60.0)
            if change is not None:
                change(session, sweep_id, "ada", store.clock())
        states[sweep_id] = "queued" if change is None else "failed"
    with changing_tables(store.engine) as connection:
        command.downgrade(alembic_config(connection), "0006")
        rows = connection.execute(text("SELECT sweep_id, state, deadline FROM job")).all()
        assert {sweep_id: state for sweep_id, state, _ in rows} == states
        assert {deadline for _, _, deadline in rows} == {None}
        command.upgrade(alembic_config(connection), "head")
    with store.session() as session:
        found = queries.list_sweeps(session)
    assert {one.id: one.state for one in found} == states
    assert {(one.priority, one.submitter, one.cloned_from) for one in found} == {(0, "operator", None)}


def test_a_change_that_leaves_a_row_without_the_one_it_refers_to_is_undone(store: Store, sweep_id: str) -> None:
    if store.engine.dialect.name == "postgresql":
        with pytest.raises(IntegrityError), changing_tables(store.engine) as connection:
            connection.execute(text("DELETE FROM sweep"))
        return
    with (
        pytest.raises(PowerlabError, match="refers to a missing row of sweep"),
        changing_tables(store.engine) as connection,
    ):
        connection.execute(text("DELETE FROM sweep"))
    with store.session() as session:
        assert session.scalars(select(SweepRow.id)).all() == [sweep_id]


def test_a_rails_offset_comes_and_goes_with_its_rows(store: Store, device_id: str) -> None:
    """Before, an INA3221's followed from its step; on the way back, rails that differ in it alone become one."""
    columns = "device_id, source, name, quantity, resolution, relative_error, update_period_s, provenance"
    with changing_tables(store.engine) as connection:
        for number, source, offset in ((1, "ina3221", 0.2), (2, "ina3221", 0.3), (3, "rapl", 0.0)):
            connection.execute(
                text(
                    f"INSERT INTO rail (id, {columns}, offset_bound, lag_s, lag_error_s, seen_share) "
                    "VALUES (:id, :device, :source, 'CPU', 'power', 0.1, 0.01, 0.0, 'measured', :offset, 0, 0, 1)"
                ),
                {"id": number, "device": device_id, "source": source, "offset": offset},
            )
        command.downgrade(alembic_config(connection), "0001")
    with changing_tables(store.engine) as connection:
        command.upgrade(alembic_config(connection), "head")
    with store.session() as session:
        rows = session.execute(text("SELECT id, source, offset_bound FROM rail ORDER BY id")).all()
    assert [tuple(row) for row in rows] == [(1, "ina3221", 0.2), (3, "rapl", 0.0)]


def test_opening_again_keeps_the_data(address: str, store: Store, sweep_id: str) -> None:
    again = open_store(address)
    with again.session() as session:
        assert session.scalar(text("SELECT count(*) FROM point")) == len(PLAN.points())
    again.close()


def test_a_newer_schema_is_refused(address: str, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(PowerlabError, match=r"newer powerlab .*9999"):
        open_store(address)


def test_somebody_elses_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (id INTEGER)")
    other.close()
    with pytest.raises(PowerlabError, match="recipes"):
        open_store(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, this is certainly not a database. " * 50)
    with pytest.raises(PowerlabError, match="not an SQLite database"):
        open_store(path)
    assert path.read_text().startswith("Dear reader")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/nowhere/at/all/p.db", "cannot be written"),
        ("/tmp", "is a folder; give the path of a file"),
        ("mysql://me@here/db", "mysql"),
        ("postgresql://me@127.0.0.1:1/db", "PostgreSQL is running"),
        ("postgresql://me@127.0.0.1:port/db", "cannot be read"),
        ("", "no database is named"),
    ],
)
def test_bad_addresses_are_one_sentence(address: str, words: str) -> None:
    with pytest.raises(PowerlabError, match=words) as caught:
        open_store(address)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(PowerlabError) as caught:
        open_store("postgresql://me:hunter2@127.0.0.1:1/db")
    assert "hunter2" not in str(caught.value)


def test_sqlite_is_set_up_as_promised(tmp_path: Path) -> None:
    store = open_store(tmp_path / "p.db")
    with store.session() as session:
        pragmas = {
            name: session.scalar(text(f"PRAGMA {name}")) for name in ("journal_mode", "foreign_keys", "synchronous")
        }
        assert pragmas == {"journal_mode": "wal", "foreign_keys": 1, "synchronous": 1}
        assert session.scalar(text("PRAGMA busy_timeout")) == 10_000
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE token SET device_id = 'nobody'",
        "UPDATE token SET device_id = NULL",
        "UPDATE token SET role = 'viewer'",
        "UPDATE token SET role = 'king', device_id = NULL",
        "UPDATE token SET expires_at = created_at",
        "UPDATE token SET sha256 = 'short'",
        "UPDATE token SET name = ''",
        "UPDATE job SET state = 'asleep'",
        "UPDATE job SET deadline = '2026-01-01 00:00:00'",
        "UPDATE job SET state = 'running'",
        "UPDATE job SET state = 'cancelled'",
        "UPDATE job SET finished_at = '2026-01-01 00:00:00'",
        "UPDATE job SET priority = 1001",
        "UPDATE sweep SET cloned_from = 'nothing'",
        "UPDATE point SET threads = 0",
        "UPDATE power_mode SET origin = 'rumour'",
        "UPDATE point SET position = 0",
        "DELETE FROM sweep",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, sweep_id: str, statement: str) -> None:
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


def test_times_come_back_with_their_zone(store: Store, device_id: str) -> None:
    with store.session() as session:
        assert session.get_one(DeviceRow, device_id).enrolled_at == store.clock()
