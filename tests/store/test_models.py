"""Models in the database: what is uploaded in any way is the file, or a clear refusal; on both databases."""

from __future__ import annotations

import hashlib
import threading
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from onnx_bytes import onnx_like, sha256
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.model_records import ModelUpload
from powerlab.store import Store
from powerlab.store.errors import MisplacedError, NotFoundError, TooLargeError
from powerlab.store.reads.models import complete_model, list_models, model_row, read_bytes
from powerlab.store.tables import AuditEventRow, ModelPieceRow, ModelRow
from powerlab.store.tables.networks import PIECE_BYTES
from powerlab.store.writes.model_verification import finish_upload
from powerlab.store.writes.models import UNFINISHED_S, append, begin_upload
from powerlab.store.writes.sweeps import create_sweep
from server_examples import Clock

MOST = 10 * PIECE_BYTES
LONG = onnx_like(2 * PIECE_BYTES + PIECE_BYTES // 2)
SHORT = onnx_like(700)


def begin(store: Store, data: bytes, name: str = "net", **said: Any) -> bool:
    request = ModelUpload(name=name, byte_count=said.get("byte_count", len(data)))
    with store.write() as session:
        return begin_upload(session, said.get("sha256", sha256(data)), request, store.clock(), MOST)


def add(store: Store, key: str, offset: int, part: bytes) -> int:
    with store.write() as session:
        return append(session, key, offset, part, store.clock()).uploaded_bytes


def stored(store: Store, key: str) -> bytes:
    with store.session() as session:
        size = complete_model(session, key, store.clock()).byte_count
    return b"".join(read_bytes(store, key, 0, size))


def whole(store: Store, data: bytes, name: str = "net") -> str:
    key = sha256(data)
    begin(store, data, name)
    add(store, key, 0, data)
    finish_upload(store, key, "tester")
    return key


def piece_count(store: Store) -> int:
    with store.session() as session:
        return session.scalar(select(func.count()).select_from(ModelPieceRow)) or 0


@pytest.mark.parametrize("part", [1000_003, PIECE_BYTES, PIECE_BYTES - 1, PIECE_BYTES + 1, len(LONG)])
def test_parts_of_any_size_make_the_file(store: Store, part: int) -> None:
    key = sha256(LONG)
    assert begin(store, LONG)
    for start in range(0, len(LONG), part):
        add(store, key, start, LONG[start : start + part])
    finish_upload(store, key, "tester")
    assert stored(store, key) == LONG
    assert piece_count(store) == 3
    assert not begin(store, LONG)
    with store.session() as session:
        (event,) = session.scalars(select(AuditEventRow).where(AuditEventRow.subject == key))
        assert (event.actor, event.action, event.detail["name"]) == ("tester", "upload model", "net")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_cut_repeated_and_reordered_parts_make_the_file_or_are_refused(store: Store, data: st.DataObject) -> None:
    """Whatever is sent: what was taken is a beginning of the file, and the answer says how long it is."""
    with store.write() as session:
        session.execute(text("DELETE FROM model"))
    file = onnx_like(PIECE_BYTES + 5000, seed=data.draw(st.integers(0, 3)))
    key, there = sha256(file), 0
    begin(store, file)
    places = st.integers(0, len(file)) | st.sampled_from([0, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(file)])
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.just(there) | places)
        part = file[start : data.draw(places)]
        if start == there:
            there = add(store, key, start, part)
            assert there == start + len(part)
        else:
            with pytest.raises(MisplacedError) as caught:
                add(store, key, start, part)
            assert caught.value.offset == there
        with store.session() as session:
            assert model_row(session, key, store.clock()).uploaded_bytes == there
        assert b"".join(read_bytes(store, key, 0, there)) == file[:there]
    add(store, key, there, file[there:])
    finish_upload(store, key, "tester")
    assert stored(store, key) == file


def test_any_range_is_read(store: Store) -> None:
    key = whole(store, LONG)
    for start, stop in ((0, 1), (5, 5), (PIECE_BYTES - 1, PIECE_BYTES + 1), (100, len(LONG)), (PIECE_BYTES, len(LONG))):
        parts = list(read_bytes(store, key, start, stop))
        assert b"".join(parts) == LONG[start:stop]
        assert all(len(part) <= PIECE_BYTES for part in parts)
    with pytest.raises(NotFoundError, match="is no longer there"):
        list(read_bytes(store, key, 0, len(LONG) + 1))


def test_wrong_bytes_are_thrown_away(store: Store) -> None:
    key = sha256(SHORT)
    begin(store, SHORT)
    add(store, key, 0, SHORT[:-1] + b"\x00")
    with pytest.raises(PowerlabError, match="not " + key):
        finish_upload(store, key, "tester")
    assert piece_count(store) == 0
    with pytest.raises(NotFoundError), store.session() as session:
        model_row(session, key, store.clock())
    assert whole(store, SHORT) == key


def test_a_file_that_is_no_model_is_thrown_away(store: Store) -> None:
    with pytest.raises(PowerlabError, match="no ONNX model"):
        whole(store, b"PK\x03\x04 this is a zip file")
    assert piece_count(store) == 0


def test_more_than_was_announced_is_refused_and_nothing_of_it_kept(store: Store) -> None:
    key = sha256(SHORT)
    begin(store, SHORT)
    add(store, key, 0, SHORT[:10])
    with pytest.raises(PowerlabError, match="would make 701"):
        add(store, key, 10, SHORT[10:] + b"!")
    add(store, key, 10, SHORT[10:])
    finish_upload(store, key, "tester")
    assert stored(store, key) == SHORT


def test_a_complete_model_takes_no_more(store: Store) -> None:
    key = whole(store, SHORT)
    assert add(store, key, len(SHORT), b"") == len(SHORT)
    finish_upload(store, key, "tester")
    with pytest.raises(MisplacedError):
        add(store, key, 0, SHORT)
    with pytest.raises(PowerlabError, match="announced"):
        add(store, key, len(SHORT), b"x")
    with pytest.raises(PowerlabError, match="has 700 bytes, not 701"):
        begin(store, SHORT, byte_count=701)
    assert stored(store, key) == SHORT


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"byte_count": MOST + 1}, TooLargeError, "takes at most"),
        ({"byte_count": 0}, PowerlabError, "empty"),
        ({"byte_count": -5}, PowerlabError, "empty"),
        ({"sha256": "f" * 63}, PowerlabError, "not a SHA-256"),
        ({"sha256": "F" * 64}, PowerlabError, "not a SHA-256"),
        ({"name": "../../etc"}, PowerlabError, "not a name for a model"),
    ],
)
def test_impossible_announcements_are_refused(store: Store, said: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        begin(store, SHORT, **said)


def test_an_announcement_with_another_size_begins_anew(store: Store) -> None:
    key = sha256(SHORT)
    begin(store, SHORT, byte_count=9)
    add(store, key, 0, SHORT[:9])
    assert begin(store, SHORT)
    assert piece_count(store) == 0
    assert whole(store, SHORT) == key


def test_an_unfinished_upload_is_given_up(store: Store, clock: Clock) -> None:
    key = sha256(LONG)
    begin(store, LONG)
    add(store, key, 0, LONG[:PIECE_BYTES])
    clock.forward(UNFINISHED_S - 1)
    add(store, key, PIECE_BYTES, b"")  # it goes on, so it waits again
    clock.forward(UNFINISHED_S - 1)
    assert not begin(store, LONG)
    clock.forward(UNFINISHED_S)
    with pytest.raises(NotFoundError):
        add(store, key, PIECE_BYTES, LONG[PIECE_BYTES:])
    done = whole(store, SHORT)  # any announcement clears away what was given up
    assert piece_count(store) == 1
    clock.forward(10 * UNFINISHED_S)
    assert begin(store, LONG)
    assert stored(store, done) == SHORT


def test_two_senders_of_the_same_file_help_each_other(store: Store) -> None:
    key, part = sha256(LONG), 300_000
    errors: list[BaseException] = []

    def send() -> None:
        try:
            there = 0
            while there < len(LONG):
                try:
                    there = add(store, key, there, LONG[there : there + part])
                except MisplacedError as error:
                    there = error.offset
            finish_upload(store, key, "tester")
        except BaseException as error:
            errors.append(error)

    begin(store, LONG)
    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert stored(store, key) == LONG


def test_models_are_listed_by_name_and_digest_and_in_pages(store: Store, clock: Clock) -> None:
    keys = []
    for number in range(5):
        keys.append(whole(store, onnx_like(100 + number), name=f"net-{number % 2}"))
        clock.forward(number % 2)
    begin(store, LONG)  # not there yet
    with store.session() as session:
        assert {row.sha256 for row in list_models(session)} == set(keys)
        assert [row.sha256 for row in list_models(session, name="net-1")] == [keys[3], keys[1]]
        assert [row.sha256 for row in list_models(session, sha256=keys[2][:10])] == [keys[2]]
        assert list_models(session, sha256="%") == []
        seen: list[str] = []
        after = None
        while page := list_models(session, limit=2, after=after):
            seen += [row.sha256 for row in page]
            after = (page[-1].completed_at, page[-1].sha256)
        assert sorted(seen) == sorted(keys)


def test_a_plan_may_name_a_model_that_is_there(store: Store, device_id: str) -> None:
    key = whole(store, SHORT, name="small")

    def sweep(word: str) -> str:
        plan = SweepPlan(models=(word,), threads=(1,))
        with store.write() as session:
            return create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())

    assert sweep(f"small@sha256:{key}")
    with pytest.raises(PowerlabError, match="named 'small' here, not 'big'"):
        sweep(f"big@sha256:{key}")
    with pytest.raises(NotFoundError, match="there is no model"):
        sweep("small@sha256:" + "0" * 64)
    with pytest.raises(PowerlabError, match="write NAME@sha256:"):
        sweep(f"sha256:{key}")
    begin(store, LONG, name="long")
    with pytest.raises(NotFoundError, match=f"only 0 of {len(LONG)} bytes"):
        sweep(f"long@sha256:{sha256(LONG)}")


def test_a_large_model_passes_through_little_memory(store: Store) -> None:
    file = onnx_like(48 * PIECE_BYTES)
    key, part = sha256(file), 4 * PIECE_BYTES
    tracemalloc.start()
    try:
        begin_large(store, key, len(file))
        for start in range(0, len(file), part):
            add(store, key, start, file[start : start + part])
        finish_upload(store, key, "tester")
        found = hashlib.sha256()
        for piece in read_bytes(store, key, 0, len(file)):
            found.update(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.hexdigest() == key
    assert peak < 20 * PIECE_BYTES, f"{peak / PIECE_BYTES:.1f} MiB"


def begin_large(store: Store, key: str, size: int) -> None:
    with store.write() as session:
        begin_upload(session, key, ModelUpload(name="large", byte_count=size), store.clock(), 100 * PIECE_BYTES)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE model SET uploaded_bytes = byte_count + 1",
        "UPDATE model SET uploaded_bytes = byte_count - 1",
        "UPDATE model SET expires_at = completed_at",
        "UPDATE model SET completed_at = NULL",
        "UPDATE model SET byte_count = 0, uploaded_bytes = 0",
        "UPDATE model SET sha256 = 'abc'",
        "UPDATE model_piece SET position = -1",
        "UPDATE model_piece SET sha256 = '" + "0" * 64 + "'",
        "INSERT INTO model_piece SELECT sha256, position, payload FROM model_piece",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, statement: str) -> None:
    whole(store, SHORT)
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


def test_pieces_go_with_their_model_and_are_no_larger_than_they_may_be(store: Store) -> None:
    key = whole(store, SHORT)
    with pytest.raises(IntegrityError), store.write() as session:
        session.add(ModelPieceRow(sha256=key, position=1, payload=bytes(PIECE_BYTES + 1)))
    with store.write() as session:
        session.delete(session.get_one(ModelRow, key))
    assert piece_count(store) == 0
