"""What is no longer kept, over the API: 410 and a sentence, never an empty answer that looks like a whole one."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

import own_loop
from powerlab.client import Client
from powerlab.client.errors import StatusError
from powerlab.client.events import blocks, follow_events
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.events import Event
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, Lease, RunUpload
from powerlab.protocol.wire import decode
from powerlab.store import Store
from powerlab.store.maintenance.retention import retire
from powerlab.store.reads.events import EventFilter
from powerlab.store.tables.retirement import Kind
from powerlab_api import event_stream
from powerlab_api.app import create_app
from powerlab_api.event_stream import Streams, stream
from powerlab_api.settings import Settings
from served import served
from server_examples import Clock, make_trace, runs_of

GONE = "tag:powerlab,2026:problem/retired"
CHUNKS = tuple(split(make_trace(), 300))


@pytest.fixture
def runs(agent: Any, clock: Clock, sweep_id: str, lease: Lease, store: Store) -> list[Run]:
    """A run of January, whose traces and events are no longer kept, and one of April."""
    found = runs_of(sweep_id)[:2]
    for run in found:
        put(agent, lease, run)
        clock.forward(93 * 24 * 3600)
    clock.forward(-93 * 24 * 3600)
    for kind in (Kind.TRACES, Kind.EVENTS):
        assert retire(store, kind, 2).row_count
    return found


def put(agent: Any, lease: Lease, run: Run) -> None:
    token = lease.fencing_token
    assert agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=token, run=run)).status_code == 201
    message = ChunksUpload(fencing_token=token, chunks=CHUNKS)
    assert agent.send("POST", f"/runs/{run.id}/traces/chunks", message).status_code == 201


def test_traces_that_went_are_gone_and_not_missing(client: TestClient, runs: list[Run]) -> None:
    first, second = runs
    for path in (f"/runs/{first.id}/traces", f"/runs/{first.id}/audit", f"/exports/traces?run_id={first.id}"):
        answer = client.get(f"/api/v1{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (410, "application/problem+json")
        assert answer.json()["type"] == GONE
        assert "before 01 February 2026 are no longer kept" in answer.json()["detail"]
    assert client.get(f"/api/v1/runs/{first.id}").status_code == 200
    assert len(client.get(f"/api/v1/runs/{second.id}/traces").json()) == 1
    lines = client.get(f"/api/v1/exports/traces?sweep_id={first.sweep_id}").text.splitlines()
    assert len(lines) == 1 + sum(chunk.sample_count for chunk in CHUNKS)


def test_chunks_that_come_late_are_answered_and_not_stored(
    client: TestClient, agent: Any, lease: Lease, runs: list[Run]
) -> None:
    token = lease.fencing_token
    one = ChunkUpload(fencing_token=token, chunk=CHUNKS[0])
    for method, message in (("PUT", one), ("POST", ChunksUpload(fencing_token=token, chunks=CHUNKS))):
        answer = agent.send(method, f"/runs/{runs[0].id}/traces/chunks", message)
        assert (answer.status_code, answer.json()) == (200, {"outcome": "unchanged"})
    assert client.get(f"/api/v1/runs/{runs[0].id}/traces").status_code == 410


def test_a_program_hears_of_it(store: Store, runs: list[Run]) -> None:
    with served(create_app(store, Settings())) as url:
        with pytest.raises(StatusError, match="no longer kept") as told:
            Client(url).audit(runs[0].id)
        assert (told.value.kind, told.value.status) == ("retired", 410)
        with pytest.raises(PowerlabError, match="start again with after=0"):
            next(follow_events(url, after=1))


def told(answer: Any) -> list[Event]:
    assert answer.status_code == 200, answer.text
    return [decode(block.data, Event) for block in blocks(answer.text.split("\n")) if block.data]


def test_a_reader_that_missed_events_is_told_so(store: Store, runs: list[Run]) -> None:
    with TestClient(create_app(store, Settings(max_event_stream_s=0.0))) as client:
        (kept,) = told(client.get("/api/v1/events?after=0"))
        assert kept.run_id == runs[1].id
        for headers, path in (({"Last-Event-ID": "1"}, ""), ({"Last-Event-ID": "0"}, "?after=0"), ({}, "?after=1")):
            answer = client.get(f"/api/v1/events{path}", headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (410, GONE)
        assert told(client.get("/api/v1/events", headers={"Last-Event-ID": str(kept.id - 1)})) == [kept]
        assert told(client.get("/api/v1/events")) == []


def test_a_stream_ends_where_what_comes_next_is_gone(
    store: Store, clock: Clock, agent: Any, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reader took too long over the first page; it comes back, and hears what is the matter."""
    monkeypatch.setattr(event_stream, "_PAGE", 1)
    put(agent, lease, runs_of(lease.sweep_id)[0])

    async def read() -> list[str]:
        made = stream(store, Streams(most=1, lasting_s=600.0), 0, EventFilter())
        texts = [await anext(made), await anext(made)]
        clock.forward(93 * 24 * 3600)
        assert retire(store, Kind.EVENTS, 1).row_count
        return texts + [text async for text in made]

    assert len(own_loop.run(read())) == 2
