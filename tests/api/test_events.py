"""The text of an event stream, its heartbeat, its end, and how many are served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi.testclient import TestClient

from powerlab.client.events import blocks
from powerlab.protocol.events import Event, EventKind
from powerlab.protocol.wire import decode
from powerlab.store import Store
from powerlab.store.event_queries import EventFilter
from powerlab_api import event_stream
from powerlab_api.app import create_app
from powerlab_api.event_stream import Streams, stream
from powerlab_api.settings import Settings


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.0)
    monkeypatch.setattr(event_stream, "HEARTBEAT_S", 0.0)


def first(store: Store, count: int, streams: Streams | None = None, after: int = 0) -> str:
    """Return the first texts of a stream, which is then left."""

    async def read() -> str:
        made = stream(store, streams or Streams(1), after, EventFilter())
        texts = [await anext(made) for _ in range(count)]
        await made.aclose()
        return "".join(texts)

    return asyncio.run(read())


def test_events_then_heartbeats(store: Store, agent: Any, sweep_id: str) -> None:
    streams = Streams(1)
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
        streams = Streams(1)
        texts = []
        async for text in stream(store, streams, 0, EventFilter()):
            texts.append(text)
            streams.closing = len(texts) == 3
        return texts

    assert len(asyncio.run(read())) == 3


def test_a_reader_too_many_is_asked_to_come_back(store: Store) -> None:
    with TestClient(create_app(store, Settings(max_event_streams=0))) as client:
        reply = client.get("/api/v1/events")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "30")
    assert reply.headers["content-type"] == "application/problem+json"
