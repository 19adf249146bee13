"""Models over HTTP: announced, sent in parts, resumed, listed, downloaded whole and in ranges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from onnx_bytes import onnx_like, sha256
from powerlab.store import Store, open_store
from powerlab.store.writes import models as model_writes
from powerlab_api.app import create_app
from powerlab_api.ranges import byte_range
from powerlab_api.settings import Settings

FILE = onnx_like(150_000)
KEY = sha256(FILE)
PATH = f"/api/v1/models/{KEY}"


def announce(client: TestClient, data: bytes = FILE, name: str = "net", **said: Any) -> Any:
    return client.put(f"/api/v1/models/{sha256(data)}", json={"name": name, "byte_count": len(data), **said})


def send(client: TestClient, offset: object, part: bytes, path: str = PATH) -> Any:
    headers = {"Upload-Offset": str(offset), "Content-Type": "application/partial-upload"}
    return client.patch(path, content=part, headers=headers)


def upload(client: TestClient, data: bytes, name: str = "net") -> None:
    assert announce(client, data, name).status_code == 201
    reply = send(client, 0, data, f"/api/v1/models/{sha256(data)}")
    assert reply.json()["complete"], reply.text


def test_a_file_is_sent_in_parts_and_the_server_says_where_it_goes_on(client: TestClient) -> None:
    first = announce(client)
    assert (first.status_code, first.headers["Upload-Offset"], first.headers["Upload-Complete"]) == (201, "0", "?0")
    assert first.json()["max_append_bytes"] == 500_000
    for start in range(0, len(FILE), 40_000):
        reply = send(client, start, FILE[start : start + 40_000])
        assert reply.status_code == 200, reply.text
        asked = client.head(PATH)
        assert (asked.status_code, asked.content) == (204, b"")
        assert asked.headers["Upload-Offset"] == reply.headers["Upload-Offset"] == str(min(start + 40_000, len(FILE)))
        assert asked.headers["Upload-Length"] == str(len(FILE))
    assert reply.headers["Upload-Complete"] == "?1"
    record = client.get(PATH).json()
    assert (record["reference"], record["complete"], record["expires_at"]) == (f"net@sha256:{KEY}", True, None)
    assert client.get("/api/v1/models").json()["items"] == [record]
    assert client.get("/api/v1/models", params={"name": "other"}).json()["items"] == []
    again = announce(client, name="another-name")
    assert (again.status_code, again.json()) == (200, record)


def test_a_part_in_the_wrong_place_is_told_the_right_one(client: TestClient) -> None:
    announce(client)
    send(client, 0, FILE[:1000])
    reply = send(client, 500, FILE[500:])
    assert (reply.status_code, reply.headers["Upload-Offset"]) == (409, "1000")
    assert reply.json()["type"].endswith("/mismatching-upload-offset")
    assert send(client, 1000, FILE[1000:]).json()["complete"]


@pytest.mark.parametrize("offset", ["-1", "x", "", "1.5"])
def test_an_offset_that_is_none_is_refused(client: TestClient, offset: str) -> None:
    announce(client)
    reply = send(client, offset, FILE)
    assert reply.status_code == 422
    assert "upload-offset" in reply.json()["detail"].lower()


def test_the_last_part_may_be_asked_for_again_empty(client: TestClient, store: Store, monkeypatch: Any) -> None:
    """A server that was killed while it verified has all bytes and no model yet."""
    announce(client)
    with store.write() as session:
        model_writes.append(session, KEY, 0, FILE, store.clock())
    assert client.head(PATH).headers["Upload-Complete"] == "?0"
    assert client.get(f"{PATH}/content").status_code == 404
    assert send(client, len(FILE), b"").json()["complete"]
    assert client.get(f"{PATH}/content").content == FILE


def test_wrong_bytes_are_a_sentence_and_the_upload_begins_anew(client: TestClient) -> None:
    announce(client)
    reply = send(client, 0, bytes(len(FILE)))
    assert (reply.status_code, "thrown away" in reply.json()["detail"]) == (422, True)
    assert client.head(PATH).status_code == 404
    upload(client, FILE)


def test_files_and_parts_that_are_too_large_are_refused(store: Store) -> None:
    with TestClient(create_app(store, Settings(max_body_bytes=1000, max_model_bytes=100_000))) as client:
        reply = announce(client)
        assert (reply.status_code, reply.json()["type"].rpartition("/")[2]) == (413, "too-large")
        assert "--max-model-mb" in reply.json()["detail"]
        small = onnx_like(5000)
        path = f"/api/v1/models/{sha256(small)}"
        announce(client, small)
        assert send(client, 0, small, path).status_code == 413
        assert client.head(path).headers["Upload-Offset"] == "0"


def test_uploads_need_the_operators_token(store: Store) -> None:
    with TestClient(create_app(store, Settings(operator_token="secret"))) as client:
        assert announce(client).status_code == 401
        assert send(client, 0, FILE).status_code == 401
        client.headers["Authorization"] = "Bearer secret"
        upload(client, FILE)


@pytest.mark.parametrize("sentence", ["database or disk is full", "disk I/O error"])
def test_a_database_that_cannot_write_is_a_problem_and_nothing_is_lost(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, sentence: str
) -> None:
    announce(client)
    send(client, 0, FILE[:1000])

    def fail(*_: object) -> None:
        raise OperationalError("INSERT", {}, Exception(sentence))

    with monkeypatch.context() as patch:
        patch.setattr(model_writes, "_write", fail)
        reply = send(client, 1000, FILE[1000:])
    assert reply.status_code == (507 if "full" in sentence else 503)
    assert reply.headers["content-type"] == "application/problem+json"
    assert client.head(PATH).headers["Upload-Offset"] == "1000"
    assert send(client, 1000, FILE[1000:]).json()["complete"]


def test_a_database_with_no_room_left(tmp_path: Path) -> None:
    """SQLite itself says that it is full, here at a bound that is set for the file."""
    store = open_store(tmp_path / "small.db")
    with TestClient(create_app(store, Settings())) as client:
        announce(client)
        with store.engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        reply = send(client, 0, FILE)
        assert (reply.status_code, reply.json()["type"].rpartition("/")[2]) == (507, "no-room")
    store.close()


@pytest.fixture
def loaded(client: TestClient) -> TestClient:
    upload(client, FILE)
    return client


def test_a_model_is_downloaded_whole(loaded: TestClient) -> None:
    reply = loaded.get(f"{PATH}/content")
    assert (reply.status_code, reply.content, reply.headers["ETag"]) == (200, FILE, f'"{KEY}"')
    assert reply.headers["Content-Length"] == str(len(FILE))
    assert reply.headers["Accept-Ranges"] == "bytes"
    unchanged = loaded.get(f"{PATH}/content", headers={"If-None-Match": f'W/"{KEY}"'})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert loaded.get(f"/api/v1/models/{'0' * 64}/content").status_code == 404


@pytest.mark.parametrize(
    ("wanted", "status", "part"),
    [
        ("bytes=0-0", 206, FILE[:1]),
        ("bytes=100-199", 206, FILE[100:200]),
        ("bytes=149999-", 206, FILE[-1:]),
        ("bytes=100-999999999", 206, FILE[100:]),
        ("bytes=-7", 206, FILE[-7:]),
        ("bytes=-999999", 200, FILE),
        ("bytes=0-", 200, FILE),
        ("bytes=150000-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-4", 200, FILE),
        ("bytes=0-1,5-6", 200, FILE),
        ("lines=1-2", 200, FILE),
        ("bytes=-", 200, FILE),
    ],
)
def test_ranges(loaded: TestClient, wanted: str, status: int, part: bytes | None) -> None:
    reply = loaded.get(f"{PATH}/content", headers={"Range": wanted})
    assert reply.status_code == status
    if part is not None:
        assert reply.content == part
        start, stop = byte_range(wanted, len(FILE)) or (0, 0)
        assert reply.headers.get("Content-Range") == (f"bytes {start}-{stop - 1}/150000" if status == 206 else None)
    else:
        assert reply.headers["Content-Range"] == "bytes */150000"


def test_a_range_of_another_version_is_ignored(loaded: TestClient) -> None:
    for tag, status in ((f'"{KEY}"', 206), ('"other"', 200), (f'W/"{KEY}"', 200)):
        reply = loaded.get(f"{PATH}/content", headers={"Range": "bytes=5-", "If-Range": tag})
        assert reply.status_code == status


def test_pages_of_models(client: TestClient) -> None:
    for number in range(5):
        upload(client, onnx_like(1000 + number), f"net-{number}")
    seen, cursor = [], None
    while True:
        page = client.get("/api/v1/models", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(seen) == [f"net-{number}" for number in range(5)]


def test_a_sweep_of_an_unknown_model_is_refused(client: TestClient, agent: Any) -> None:
    plan = {"models": [f"net@sha256:{KEY}"], "threads": [1]}
    request = {"device_id": agent.device_id, "plan": plan}
    assert client.post("/api/v1/sweeps", json=request).status_code == 404
    upload(client, FILE)
    assert client.post("/api/v1/sweeps", json=request).status_code == 201
