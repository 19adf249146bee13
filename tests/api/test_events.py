"""The text of an event stream, its heartbeat, its end, who may read it, and how many do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import own_loop
from access_world import access_world
from powerlab.client.events import blocks
from powerlab.protocol.events import Event, EventKind
from powerlab.protocol.wire import decode
from powerlab.store import Store
from powerlab.store.reads.events import EventFilter
from powerlab_api import event_stream
from powerlab_api.app import create_app
from powerlab_api.event_stream import Streams, stream
from powerlab_api.settings import Settings


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.0)
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.0)


def places(most: int = 1, lasting_s: float = 600.0) -> Streams:
    return Streams(most=most, lasting_s=lasting_s)


def first(store: Store, count: int, streams: Streams | None = None, after: int = 0) -> str:
    """Return the first texts of a stream, which is then left."""

    async def read() -> str:
        made = stream(store, streams or places(), after, EventFilter())
        texts = [await anext(made) for _ in range(count)]
        await made.aclose()
        return "".join(texts)

    return own_loop.run(read())


def test_events_then_heartbeats(store: Store, agent: Any, sweep_id: str) -> None:
    streams = places()
    text = first(store, 5, streams)
    assert text.startswith("retry: 2000\nid: 0\n\n")
    found = [decode(block.data, Event) for block in blocks(text.split("\n")) if block.data]
    assert [event.kind for event in found] == [EventKind.DEVICE_ENROLLED, EventKind.SWEEP_CREATED]
    assert (found[1].sweep_id, found[1].device_id) == (sweep_id, agent.device_id)
    assert text.endswith(f": nothing new\nid: {found[1].id}\n\n" * 2)
    assert streams.open == 0
    assert "data:" not in first(store, 3, after=found[1].id)


def test_a_stream_ends_when_the_server_does(store: Store) -> None:
    async def read() -> list[str]:
        streams = places()
        texts = []
        async for text in stream(store, streams, 0, EventFilter()):
            texts.append(text)
            streams.closing = len(texts) == 3
        return texts

    assert len(own_loop.run(read())) == 3


def test_a_reader_too_many_is_asked_to_come_back(store: Store) -> None:
    with TestClient(create_app(store, Settings(max_event_streams=0))) as client:
        reply = client.get("/api/v1/events")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "30")
    assert reply.headers["content-type"] == "application/problem+json"


@pytest.fixture
def short(store: Store, agent: Any, sweep_id: str) -> Iterator[TestClient]:
    """Return a server whose streams tell what there is and end."""
    with TestClient(create_app(store, Settings(max_event_stream_s=0.0))) as client:
        yield client


def told(reply: Any) -> list[Event]:
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"].startswith("text/event-stream")
    return [decode(block.data, Event) for block in blocks(reply.text.split("\n")) if block.data]


def test_a_stream_whose_time_is_over_ends_and_is_taken_up_where_it_ended(short: TestClient, agent: Any) -> None:
    enrolled, created = told(short.get("/api/v1/events?after=0"))
    assert enrolled.id < created.id
    assert told(short.get("/api/v1/events")) == []  # from now on
    assert told(short.get("/api/v1/events", headers={"Last-Event-ID": str(enrolled.id)})) == [created]
    behind = short.get("/api/v1/events?after=0", headers={"Last-Event-ID": str(created.id)})
    assert told(behind) == []  # a browser that comes back asks for the same address again
    assert behind.text.startswith(f"retry: 2000\nid: {created.id}\n\n")
    agent.lease()
    assert [event.kind for event in told(short.get("/api/v1/events", headers={"Last-Event-ID": str(created.id)}))] == [
        EventKind.SWEEP_STARTED
    ]


def test_an_odd_last_id_is_refused_in_a_sentence(short: TestClient) -> None:
    for given in ("-1", "x", "", "9" * 20, "\u0661"):
        reply = short.get("/api/v1/events", headers={"Last-Event-ID": given.encode()})
        assert (reply.status_code, reply.headers["content-type"]) == (422, "application/problem+json")
        assert "last-event-id" in reply.json()["detail"]


@pytest.mark.campaign
def test_people_may_follow_and_agents_may_not(tmp_path: Path) -> None:
    with access_world(tmp_path) as world:
        for who in ("viewer", "operator", "admin"):
            kinds = [event.kind for event in told(world.ask(who, "GET", "/events?after=0"))]
            assert EventKind.RUN_STORED in kinds
        for who, status in (("agent", 403), ("stranger", 403), ("revoked", 401), ("nobody", 401)):
            reply = world.ask(who, "GET", f"/events?after=0&device_id={world.ids['device_id']}")
            assert (reply.status_code, "run.stored" in reply.text) == (status, False)
