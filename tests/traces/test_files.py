"""Traces in files: what a crash leaves, what compaction does and does not, moving, and whose the files are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.store import Store, open_store
from powerlab.store.errors import UnavailableError
from powerlab.store.reads import queries
from powerlab.store.reads.run_audit import audit_run
from powerlab.store.tables import ServerKeyRow, TraceChunkRow
from powerlab.store.traces import compaction
from powerlab.store.traces.compaction import Compacted, compact, remove_month
from powerlab.store.traces.object_storage import open_objects
from powerlab.store.traces.registry import open_traces
from powerlab.store.traces.relocation import move
from server_examples import COUNTER, RAIL, make_trace
from trace_lab import Lab, lab_with

NOW = timedelta(0)


def recorded(lab: Lab, run: int = 0) -> list[bytes]:
    with lab.store.session() as session:
        found = queries.recorded(session, lab.run_ids[run])
        return [trace.time_ns.tobytes() + trace.value.tobytes() for trace in found]


def path_of(lab: Lab, key: str) -> Path:
    return Path(lab.files.objects.path(key))


def fill(lab: Lab) -> None:
    """Ten files of two runs."""
    for run, seed in ((0, 1), (1, 2)):
        assert lab.send(run, make_trace(RAIL, 900, seed)) == [True] * 3
        assert lab.send(run, make_trace(COUNTER, 600, seed)) == [True] * 2


def test_a_crash_between_file_and_row_leaves_a_file_that_goes(on_both: Lab) -> None:
    with on_both.store.session() as session:
        _append(on_both, session)
    (orphan,) = on_both.keys
    assert on_both.send(0, make_trace(RAIL, 100)) == [True]
    assert compact(on_both.store, on_both.files) == Compacted()
    assert orphan in on_both.keys
    assert compact(on_both.store, on_both.files, grace=NOW) == Compacted(removed_count=1)
    assert orphan not in on_both.keys
    assert recorded(on_both) == [make_trace(RAIL, 100).time_ns.tobytes() + make_trace(RAIL, 100).value.tobytes()]


def _append(lab: Lab, session: object) -> None:
    from powerlab.protocol.chunks import split

    (chunk,) = split(make_trace(RAIL, 100))
    assert lab.files.append(session, lab.device_id, lab.run_ids[0], (chunk,))  # type: ignore[arg-type]


def test_small_files_become_one_and_old_ones_go_later(on_both: Lab) -> None:
    fill(on_both)
    before, old = [recorded(on_both, run) for run in (0, 1)], on_both.keys
    assert len(old) == 10
    assert compact(on_both.store, on_both.files) == Compacted(merged_count=10, made_count=1)
    assert len(on_both.keys) == 11
    assert [recorded(on_both, run) for run in (0, 1)] == before
    assert compact(on_both.store, on_both.files) == Compacted()  # the grace has not passed
    assert compact(on_both.store, on_both.files, grace=NOW) == Compacted(removed_count=10)
    assert [recorded(on_both, run) for run in (0, 1)] == before
    assert len(on_both.keys) == 1
    assert not any(on_both.send(0, make_trace(RAIL, 900, 1)))  # still there already
    (month,) = {key.split("/")[0] for key in on_both.keys}
    assert month == "month=2026-01"


def test_few_files_are_left_alone_and_large_ones_too(filed: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(filed)
    assert compact(filed.store, filed.files, fewest=11) == Compacted()
    monkeypatch.setattr(compaction, "_SMALL_SAMPLES", 299)
    assert compact(filed.store, filed.files) == Compacted()
    monkeypatch.setattr(compaction, "_SMALL_SAMPLES", 300)
    monkeypatch.setattr(compaction, "LARGE_SAMPLES", 1500)
    assert compact(filed.store, filed.files) == Compacted(merged_count=10, made_count=2)


def test_a_reader_that_asked_before_still_finds_its_files(filed: Lab) -> None:
    fill(filed)
    with filed.store.session() as session:
        pieces = filed.traces.scan(session, filed.run_ids[0])
        compact(filed.store, filed.files)
        assert sum(len(piece.samples()[0]) for piece in pieces) == 1500


def test_of_two_that_compact_the_second_takes_its_file_back(on_both: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(on_both)
    before = recorded(on_both)
    put = on_both.files.objects.put
    others: list[Compacted] = []

    def late(key: str, content: bytes) -> None:
        put(key, content)
        if not others:
            others.append(Compacted())
            others.append(compact(on_both.store, on_both.files))

    monkeypatch.setattr(type(on_both.files.objects), "put", lambda self, key, content: late(key, content))
    assert compact(on_both.store, on_both.files) == Compacted()
    assert others[1] == Compacted(merged_count=10, made_count=1)
    assert len(on_both.keys) == 11
    assert recorded(on_both) == before


def test_object_storage_is_kept_as_a_folder_is(remote: Lab) -> None:
    fill(remote)
    before = recorded(remote)
    assert compact(remote.store, remote.files) == Compacted(merged_count=10, made_count=1)
    assert compact(remote.store, remote.files) == Compacted()
    # Storage says to the second when an object was written, and its clock is not ours.
    assert compact(remote.store, remote.files, grace=timedelta(seconds=-5)) == Compacted(removed_count=10)
    assert recorded(remote) == before
    assert remove_month(remote.files, "2026-01") == 1
    assert remote.keys == []


def test_files_that_were_just_replaced_are_kept_however_old_they_are(
    filed: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(filed)
    old = filed.keys
    for key in old:
        os.utime(path_of(filed, key), (1e9, 1e9))
    chunks, others = compaction._chunks, []

    def overtaken(session: Session, folder: str) -> Iterator[object]:
        found = list(chunks(session, folder))
        if not others:
            others.append(folder)
            assert compact(filed.store, filed.files) == Compacted(merged_count=10, made_count=1)
        return iter(found)

    monkeypatch.setattr(compaction, "_chunks", overtaken)
    assert compact(filed.store, filed.files) == Compacted()  # it knew the old rows, and then found new ones
    assert compact(filed.store, filed.files) == Compacted()
    assert set(old) <= set(filed.keys)
    assert len(filed.keys) == len(old) + 1


def test_a_damaged_file_is_named_and_not_put_into_another(filed: Lab) -> None:
    fill(filed)
    whole, gone = filed.keys[0], filed.keys[1]
    path_of(filed, whole).write_bytes(path_of(filed, filed.keys[2]).read_bytes())
    path_of(filed, gone).write_bytes(b"PAR1 and nothing else")
    done = compact(filed.store, filed.files)
    assert set(done.damaged) == {whole, gone}
    assert (done.merged_count, done.made_count) == (8, 1)
    assert {whole, gone} <= set(filed.keys)


def test_an_audit_sees_a_sample_that_was_changed_in_a_file(filed: Lab) -> None:
    from pyarrow import parquet

    assert filed.send(0, make_trace(RAIL, 100)) == [True]
    (key,) = filed.keys
    table = parquet.read_table(path_of(filed, key), partitioning=None)
    value = table["value"].to_numpy().copy()
    value[17] += 1e-9
    changed = table.set_column(table.schema.get_field_index("value"), table.schema.field("value"), [value])
    parquet.write_table(changed, path_of(filed, key))
    with filed.store.session() as session:
        found = audit_run(session, filed.run_ids[0])
    (complaint,) = [one for one in found.compared if not one.equal and one.what.startswith("samples")]
    assert "not those that were stored" in complaint.detail


def test_a_file_that_is_gone_is_a_sentence(filed: Lab) -> None:
    assert filed.send(0, make_trace(RAIL, 100)) == [True]
    filed.files.objects.delete(filed.keys)
    with filed.store.session() as session, pytest.raises(UnavailableError, match="cannot be read now"):
        queries.recorded(session, filed.run_ids[0])


def test_a_folder_that_cannot_be_written_stores_no_row(filed: Lab) -> None:
    filed.send(0, make_trace(RAIL, 100))
    folder = path_of(filed, filed.keys[0]).parent
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.write_text("in the way")
    with pytest.raises(UnavailableError, match="try again later"):
        filed.send(1, make_trace(RAIL, 100))
    with filed.store.session() as session:
        assert session.scalars(select(TraceChunkRow.id).where(TraceChunkRow.run_id == filed.run_ids[1])).all() == []


def test_what_retention_deletes_goes_from_the_files_too(on_both: Lab) -> None:
    fill(on_both)
    with on_both.store.write() as session:
        session.execute(delete(TraceChunkRow).where(TraceChunkRow.run_id == on_both.run_ids[0]))
    assert compact(on_both.store, on_both.files, grace=NOW, fewest=99) == Compacted(removed_count=5)
    assert len(recorded(on_both, 1)) == 2
    assert remove_month(on_both.files, "2026-02") == 0
    assert remove_month(on_both.files, "2026-01") == 5
    assert on_both.keys == []


def in_database(lab: Lab, path: Path) -> tuple[Lab, Store]:
    """A laboratory as it was before: the traces in the database."""
    store = open_store(path, lab.store.clock)
    return lab_with(store), store


def test_moving_out_of_the_database_may_be_stopped(on_both: Lab, tmp_path: Path) -> None:
    lab, store = in_database(on_both, tmp_path / "older.db")
    fill(lab)
    before = [recorded(lab, run) for run in (0, 1)]
    home = open_traces(f"file://{tmp_path}/moved")
    moved = Lab(open_store(tmp_path / "older.db", store.clock, traces=home), lab.device_id, lab.held, lab.run_ids)
    first = next(move(moved.store, moved.files))
    assert (first.chunk_count, first.sample_count, first.complaint) == (5, 1500, "")
    assert [recorded(moved, run) for run in (0, 1)] == before  # one in a file, one in the database
    with pytest.raises(PowerlabError, match="moved out of the database; say where to with --traces"):
        [recorded(lab, run) for run in (0, 1)]
    (second,) = move(moved.store, moved.files)
    assert {first.run_id, second.run_id} == set(lab.run_ids[:2])
    assert list(move(moved.store, moved.files)) == []
    assert [recorded(moved, run) for run in (0, 1)] == before
    assert len(moved.keys) == 2
    assert not any(moved.send(0, make_trace(RAIL, 900, 1)))
    assert all(moved.send(2, make_trace(RAIL, 1200, 1)))
    assert len(moved.keys) == 6
    store.close()
    moved.store.close()


def test_a_run_with_a_damaged_chunk_stays_in_the_database(filed: Lab, tmp_path: Path) -> None:
    lab, store = in_database(filed, tmp_path / "older.db")
    fill(lab)
    with store.write() as session:
        session.execute(update(TraceChunkRow).where(TraceChunkRow.run_id == lab.run_ids[0]).values(payload=b"?"))
    home = open_traces(f"file://{tmp_path}/moved")
    moved = Lab(open_store(tmp_path / "older.db", store.clock, traces=home), lab.device_id, lab.held, lab.run_ids)
    complaints = {one.run_id: one.complaint for one in move(moved.store, moved.files)}
    assert "sha256" in complaints[lab.run_ids[0]]
    assert complaints[lab.run_ids[1]] == ""
    assert len(moved.keys) == 1
    store.close()
    moved.store.close()


def test_two_databases_do_not_share_files(filed: Lab, tmp_path: Path) -> None:
    fill(filed)
    other = open_store(tmp_path / "other.db", filed.store.clock, traces=open_traces(f"file://{tmp_path}/shared"))
    with other.session() as session:
        other.traces.claim(session)  # type: ignore[attr-defined]
    stranger = open_store(tmp_path / "third.db", filed.store.clock, traces=open_traces(f"file://{tmp_path}/shared"))
    with pytest.raises(PowerlabError, match="belong to another database"):
        compact(stranger, stranger.traces, grace=NOW)  # type: ignore[arg-type]
    with pytest.raises(PowerlabError, match="belong to another database"):
        lab_with(stranger).send(0, make_trace())
    with stranger.session() as session:
        secret = session.get_one(ServerKeyRow, "sessions").secret
    assert secret.encode() not in open_objects(f"file://{tmp_path}/shared").get("powerlab-database")
    other.close()
    stranger.close()


def test_a_run_whose_name_is_no_identifier_is_refused(filed: Lab) -> None:
    from powerlab.store.traces.parquet import new_key

    with filed.store.session() as session:
        for name in ("../../etc", "a'b", "", "x" * 37):
            with pytest.raises(PowerlabError, match="cannot be kept in files"):
                new_key(session, filed.device_id, name)


@pytest.mark.parametrize(
    ("address", "query", "words"),
    [
        ("gopher://hole", None, "cannot store traces at"),
        ("file:relative/folder", None, "not a folder"),
        ("file://host/folder", None, "not a folder"),
        ("file:///proc/nowhere/traces", None, "choose a folder that you may write to"),
        ("s3://", None, "not a place for traces"),
        ("s3://key:secret@bucket", None, "not a place for traces"),
        ("s3://bucket?secret=x", None, "not a place for traces"),
        ("s3://bucket?endpoint=storage:9000", None, "not an address"),
        ("database", "duckdb", "is for traces in files"),
        ("file:///tmp", "sqlite", "give one of: duckdb, clickhouse"),
        ("file:///tmp", "clickhouse://", "address of ClickHouse is wrong"),
        ("file:///tmp", "clickhouse://host/database", "address of ClickHouse is wrong"),
        ("file:///tmp", "clickhouse://host?colour=red", "address of ClickHouse is wrong"),
    ],
)
def test_a_wrong_address_is_one_sentence(address: str, query: str | None, words: str) -> None:
    with pytest.raises(PowerlabError, match=words) as told:
        open_traces(address, query)
    assert "secret@" not in str(told.value) or "keys belong into" in str(told.value)
