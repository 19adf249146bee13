"""Readers that do not take what is sent to them: they cost a page of events each, and in the end their place."""

from __future__ import annotations

import json
import logging
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from powerlab.protocol.events import Event, EventKind
from powerlab.store import Store
from powerlab.store.reads.events import EventFilter, events_after
from powerlab.store.tables import EventRow
from powerlab_api import event_stream
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from served import served

EVENTS = 6000
WORDS = "x" * 3000
"""18 MB in all: more than a kernel keeps for a connection, 4 MB to send and 6 MB received."""


@pytest.fixture
def filled(store: Store, agent: Any) -> Store:
    row = {"at": store.clock(), "kind": EventKind.DEVICE_SEEN.value, "device_id": agent.device_id, "detail": WORDS}
    with store.write() as session:
        session.execute(EventRow.__table__.insert(), [row] * EVENTS)
    return store


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the pages that streams asked for, by the sweep that they named."""
    counted: Counter[str] = Counter()

    def looked(session: Any, after: int, request: EventFilter, limit: int) -> tuple[list[Event], int]:
        counted[request.sweep_id or "all"] += 1
        return events_after(session, after, EventFilter(), limit)

    monkeypatch.setattr(event_stream, "events_after", looked)
    return counted


def ask(url: str, path: str) -> socket.socket:
    """Ask for a stream, with as little room for its answer as the kernel allows."""
    place = urlsplit(url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((place.hostname, place.port))
    connection.settimeout(60)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    return connection


def ids(connection: socket.socket) -> Iterator[int]:
    """Yield the ids of events as they come."""
    with connection.makefile("rb") as lines:
        for line in lines:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))["id"]


@pytest.mark.campaign
def test_a_slow_reader_is_waited_for_and_told_everything(filled: Store, pages: Counter[str]) -> None:
    with served(create_app(filled)) as url, closing(ask(url, "/api/v1/events?after=0&sweep_id=slow")) as slow:
        slow.recv(1)
        with closing(ask(url, "/api/v1/events?after=0&sweep_id=quick")) as quick:
            seen = [one for one, _ in zip(ids(quick), range(EVENTS), strict=False)]
        assert pages["quick"] >= EVENTS / 200
        assert pages["slow"] < pages["quick"] * 2 / 3  # what fits into the kernel's buffers, and no more
        assert [one for one, _ in zip(ids(slow), range(EVENTS), strict=False)] == seen


def test_a_reader_that_takes_nothing_loses_its_place(
    filled: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(event_stream, "PATIENCE_S", 0.2)
    app = create_app(filled, Settings(max_event_streams=1))
    with caplog.at_level(logging.WARNING, "powerlab.api"), served(app) as url:
        with closing(ask(url, "/api/v1/events?after=0")) as stuck:
            stuck.recv(1)
            status = b""
            while status != b"200":
                with closing(ask(url, "/api/v1/events")) as second:
                    status = second.recv(100).split(b" ")[1]
                assert status in {b"200", b"503"}
        assert "took nothing" in caplog.text
