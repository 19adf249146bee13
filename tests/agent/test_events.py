"""Live events from a real server: followed over its restarts, by many at once, until it ends."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from forked_program import ForkedProgram
from patient_http import http_answer
from powerlab.client import events as event_stream
from powerlab.client.events import follow_events
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.events import EventKind
from powerlab.protocol.messages import Description
from powerlab_agent.client import Client
from powerlab_agent.state import Identity
from server_examples import PLAN, capabilities, device

pytestmark = pytest.mark.campaign(minutes=0.5)

ALL = len(PLAN.points()) * PLAN.repeats


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "_RETRY_S", 0.05)


def test_a_sweep_is_followed_over_a_killed_server(server: Any, sweep_id: str, start_agent: Callable[[], Any]) -> None:
    events = follow_events(server.url, after=0, sweep_id=sweep_id)
    assert next(events).kind is EventKind.SWEEP_CREATED
    agent = start_agent()
    agent.measure(3)
    assert next(events).kind is EventKind.SWEEP_STARTED
    stored = [next(events) for _ in range(2)]
    server.kill()
    agent.go_on()
    assert agent.wait_for_run()
    server.start()
    agent.finish()
    while (last := next(events)).kind is EventKind.RUN_STORED:
        stored.append(last)
    assert last.kind is EventKind.SWEEP_FINISHED
    assert sorted(event.run_id for event in stored) == sorted(run.id for run in server.runs(sweep_id))
    assert len(stored) == ALL
    assert [event.id for event in stored] == sorted(event.id for event in stored)
    again = follow_events(server.url, after=stored[4].id, sweep_id=sweep_id)
    assert [next(again) for _ in range(ALL - 5)] == stored[5:]


def ask(url: str, path: str) -> socket.socket:
    """Ask for a stream and leave the connection open."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname, place.port), timeout=60)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
    return connection


def test_many_readers_hold_no_threads_and_give_their_places_back(server: Any) -> None:
    for _ in range(2):  # 60 twice are more than the 100 that are served at once
        with ExitStack() as stack:
            readers = []
            while len(readers) < 60:
                reader = ask(server.url, "/api/v1/events")
                if b" 200 " in reader.recv(200):
                    readers.append(stack.enter_context(reader))
                else:  # the server has not noticed yet that the first ones left
                    reader.close()
            for _ in range(3):
                assert http_answer("GET", f"{server.url}/api/v1/devices").status == 200


def test_what_is_refused_is_a_sentence(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = http_answer("GET", f"{server.url}/api/v1/events?after=-1")
    assert (reply.status, reply.headers["Content-Type"]) == (422, "application/problem+json")
    with pytest.raises(PowerlabError, match="after"):
        next(follow_events(server.url, after=-1))
    with pytest.raises(PowerlabError, match="no powerlab server answers"):
        next(follow_events("http://127.0.0.1:9", patience_s=0.01))


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[ForkedProgram, str]]:
    words = ["serve", "--port", "0", "--database", str(tmp_path / "p.db")]
    process = ForkedProgram(["-m", "powerlab.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    yield process, process.stdout.readline().split()[-1]
    process.kill()
    process.communicate()


def test_a_server_that_ends_ends_its_streams_in_order(process: tuple[ForkedProgram, str]) -> None:
    running, url = process
    answer = http_answer("GET", f"{url}/api/v1/events", preload_content=False)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.read1() == b"retry: 2000\nid: 0\n\n"
    running.terminate()
    assert answer.read() == b""  # the end of a whole answer; a cut one raises
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (0, "")


def test_a_device_is_seen_when_its_agent_starts(server: Any, identity: Identity) -> None:
    events = follow_events(server.url, after=0, device_id=identity.device_id)
    assert next(events).kind is EventKind.DEVICE_ENROLLED
    said = Description(device=device(identity.device_name), capabilities=capabilities())
    Client(server.url, identity.token).describe(said)
    seen = next(events)
    assert (seen.kind, seen.device_id) == (EventKind.DEVICE_SEEN, identity.device_id)
