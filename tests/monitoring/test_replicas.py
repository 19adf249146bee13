"""Two servers over one PostgreSQL are one service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from forked_program import ForkedProgram
from free_port import free_port
from patient_http import http_answer
from postgres_cluster import new_database, postgres_cluster
from powerlab.protocol.messages import EnrolmentCode, EnrolRequest, RunUpload, SweepRequest
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.wire import decode, encode
from powerlab_agent.client import Client
from prometheus_server import wait_for_answer
from server_database import fill
from server_examples import PLAN, capabilities, device, runs_of

pytestmark = pytest.mark.campaign(minutes=0.5)


@contextmanager
def replica(database: str, folder: Path) -> Iterator[str]:
    port = free_port()
    words = ["serve", "--port", str(port), "--database", database]
    with (folder / f"{port}.log").open("wb") as log:
        process = ForkedProgram(["-m", "powerlab.cli", *words], stdout=log, stderr=log)
    try:
        wait_for_answer(f"http://127.0.0.1:{port}/api/v1/health", process, folder / f"{port}.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Two servers that were started at the same time over an empty database, which got something since."""
    folder = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        database = new_database(stack.enter_context(postgres_cluster()))
        one, other = (stack.enter_context(replica(database, folder)) for _ in range(2))
        fill(database)
        yield one, other


def get(server: str, path: str) -> bytes:
    reply = http_answer("GET", server + path)
    assert reply.status == 200, reply.data
    return reply.data


def post(server: str, path: str, message: object) -> bytes:
    headers = {"Content-Type": "application/json"}
    reply = http_answer("POST", f"{server}/api/v1{path}", body=encode(message), headers=headers)
    assert reply.status < 300, reply.data
    return reply.data


def test_both_answer_every_question_alike(replicas: tuple[str, str]) -> None:
    one, other = replicas
    (sweep, *_) = json.loads(get(one, "/api/v1/sweeps"))["items"]
    runs = json.loads(get(one, "/api/v1/runs?limit=2"))
    assert len(runs["items"]) == 2
    first: dict[str, Any] = runs["items"][0]
    for path in (
        "/api/v1/devices",
        "/api/v1/sweeps",
        f"/api/v1/sweeps/{sweep['id']}",
        "/api/v1/runs?limit=2",
        f"/api/v1/runs?limit=2&cursor={runs['next_cursor']}",
        f"/api/v1/runs/{first['id']}",
        f"/api/v1/runs/{first['id']}/traces",
    ):
        assert get(one, path) == get(other, path), path


def test_what_one_was_told_the_other_knows_and_a_job_goes_on_there(replicas: tuple[str, str]) -> None:
    one, other = replicas
    code = decode(post(one, "/enrolment-codes", {}), EnrolmentCode).code
    reply = Client(other).enrol(EnrolRequest(code=code, device=device("wanderer"), capabilities=capabilities()))
    at_one, at_other = Client(one, reply.token), Client(other, reply.token)
    sweep = decode(post(other, "/sweeps", SweepRequest(device_id=reply.device_id, plan=PLAN)), SweepRecord)
    held = at_one.lease(0.0)
    assert held is not None
    assert held.sweep_id == sweep.id
    assert at_other.lease(0.0) is None  # it is given out once
    at_other.heartbeat(held.job_id, held.fencing_token)
    run = runs_of(sweep.id)[0]
    upload = RunUpload(fencing_token=held.fencing_token, run=run)
    assert [client.put_run(upload).outcome for client in (at_other, at_one)] == ["created", "unchanged"]
    at_one.release(held.job_id, held.fencing_token)
    again = at_other.lease(0.0)
    assert again is not None
    assert (again.job_id, again.fencing_token) == (held.job_id, held.fencing_token + 1)
    assert len(again.done) == 1


def test_the_figures_of_the_database_are_the_same_and_those_of_the_process_are_not(replicas: tuple[str, str]) -> None:
    for _ in range(7):
        get(replicas[0], "/api/v1/health")
    shown = [get(server, "/metrics").decode() for server in replicas]
    ages = re.compile(r"^powerlab_oldest_queued_job_age_seconds .*$", re.MULTILINE)
    shared = [
        sorted(re.findall(r"^powerlab_(?:device|jobs|leases|newest)\S* .*$", ages.sub("", text), re.MULTILINE))
        for text in shown
    ]
    assert shared[0] == shared[1]
    assert len(shared[0]) > 20
    health = [re.findall(r'^powerlab_http_requests_total\{.*route="/api/v1/health".*$', text, re.M) for text in shown]
    assert health[0] != health[1]
