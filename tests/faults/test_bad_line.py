"""The line to the server is cut, reset, half-closed, swallows what is said, is late and slow; uploads come twice."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faults.bad_line import FATES, BadLine, bad_line
from faults.lives import PLAN, Lives, start_lives
from onnx_bytes import onnx_like, sha256
from patient_http import http_answer
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, RunUpload
from powerlab.protocol.records import SweepState
from powerlab.protocol.wire import encode
from powerlab.store.reads import queries
from powerlab.sweep.events import RunFinished
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.models import ModelCache
from powerlab_agent.spool import Spool
from powerlab_agent.state import save_identity
from powerlab_agent.uploader import Uploader
from server_examples import COUNTER, RAIL, make_run, make_trace

pytestmark = pytest.mark.campaign(minutes=1)

SWEEPS = int(os.environ.get("POWERLAB_FAULT_LINES", "5"))
READ_S = 1.0
MODEL = onnx_like(700_000)


@pytest.fixture(scope="module")
def hasty(shim: Any, server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    """An agent that soon gives up a line that swallows everything."""
    with start_lives(shim, server.enrol(), tmp_path_factory.mktemp("hasty"), read_s=READ_S) as started:
        yield started


def test_every_run_arrives_once_over_any_line(server: Any, stored: Any, hasty: Lives) -> None:
    fates: Counter[str] = Counter()
    for seed in range(SWEEPS):
        sweep_id = server.create_sweep(hasty.identity, PLAN)
        with bad_line(server.port, seed) as line:
            save_identity(hasty.state, replace(hasty.identity, server=line.url))
            hasty.finish(stored, sweep_id)
            fates += line.fates
        hasty.check(stored, sweep_id)
    assert set(fates) >= set(FATES[:SWEEPS])
    sys.stdout.write(f"{SWEEPS} sweeps over {fates.total()} connections: {dict(fates.most_common())}\n")


@pytest.fixture(scope="module")
def model_word(server: Any) -> str:
    """What a plan calls a model that the server has."""
    url = f"{server.url}/api/v1/models/{sha256(MODEL)}"
    http_answer("PUT", url, json={"name": "net", "byte_count": len(MODEL)})
    assert http_answer("PATCH", url, body=MODEL, headers={"Upload-Offset": "0"}).status == 200
    return f"net@sha256:{sha256(MODEL)}"


def fetch(server: Any, word: str, line: BadLine, folder: Path) -> None:
    """Fetch a model as an agent does whose sweep names it, until it is there."""
    identity = server.enrol()
    server.create_sweep(identity, replace(PLAN, models=(word,)))
    cache, files = ModelCache(Client(line.url, identity.token, READ_S), folder, 1_000_000), None
    while files is None:
        with suppress(ServerUnreachableError):
            files = cache.fetch([word], lambda: False)
    assert Path(files[word]).read_bytes() == MODEL
    assert line.answered_bytes < len(MODEL) + 70_000 * line.fates.total(), "only what was on its way comes twice"


def test_a_model_arrives_over_any_line(server: Any, model_word: str, tmp_path: Path) -> None:
    fates: Counter[str] = Counter()
    for seed in range(len(FATES)):
        with bad_line(server.port, seed, most_bytes=200_000, slow_bytes_per_s=4e6) as line:
            fetch(server, model_word, line, tmp_path / str(seed))
            fates += line.fates
    assert set(fates) >= set(FATES)
    sys.stdout.write(f"{len(FATES)} models over {fates.total()} connections: {dict(fates.most_common())}\n")


@pytest.mark.parametrize("fate", ["answer reset", "answer cut", "answer half-closed"])
def test_a_model_arrives_over_a_line_that_never_lasts(server: Any, model_word: str, tmp_path: Path, fate: str) -> None:
    with bad_line(server.port, 0, fate=fate, most_bytes=200_000) as line:
        fetch(server, model_word, line, tmp_path)
    sys.stdout.write(f"1 model over {line.fates.total()} connections, each {fate}\n")


def test_a_job_is_had_over_any_line_by_an_agent_that_waits_for_one(server: Any, stored: Any) -> None:
    """A job given to a connection that is gone by then comes again when its lease has run out; nobody else gets it."""
    fates: Counter[str] = Counter()
    for seed in range(len(FATES)):
        identity = server.enrol()
        with bad_line(server.port, seed, most_bytes=1000) as line:
            client = Client(line.url, identity.token, READ_S)
            submitting = threading.Timer(0.1, server.create_sweep, (identity, PLAN))
            submitting.start()
            lease = None
            while lease is None:
                with suppress(ServerUnreachableError):
                    lease = client.lease(0.3)
            submitting.join()
            while True:
                with suppress(ServerUnreachableError):
                    client.release(lease.job_id, lease.fencing_token)
                    break
            fates += line.fates
        with stored.session() as session:
            assert queries.sweep(session, lease.sweep_id).state is SweepState.QUEUED
    assert set(fates) >= set(FATES)
    sys.stdout.write(f"{len(FATES)} jobs over {fates.total()} connections: {dict(fates.most_common())}\n")


def test_a_long_recording_arrives_over_a_slow_line(server: Any, stored: Any, tmp_path: Path) -> None:
    """Sending takes several times as long as the agent waits for an answer; what counts is that something moves."""
    identity = server.enrol()
    sweep_id = server.create_sweep(identity, PLAN)
    with (
        bad_line(server.port, 0, fate="slow", slow_bytes_per_s=300_000) as line,
        closing(Spool(tmp_path / "spool.db")) as spool,
    ):
        client = Client(line.url, identity.token, READ_S)
        lease = client.lease(0.0)
        run = make_run(sweep_id, PLAN.points()[0], 0)
        traces = (make_trace(RAIL, count=60_000), make_trace(COUNTER, count=70_000))
        spool.add(RunFinished(run=run, traces=traces, index=1, run_count=1), lease.fencing_token)
        for _ in range(5):  # a busy machine may be slow for once, a line that is too slow always is
            with suppress(ServerUnreachableError):
                Uploader(client, spool).upload_all(lease)
        assert spool.next() is None
    with stored.session() as session:
        assert len(queries.power_traces(session, run.id)) == 2
    sys.stdout.write(f"1 long recording over {line.fates.total()} slow connections\n")


def test_uploads_that_come_twice_and_in_any_order_change_nothing(server: Any, stored: Any, lives: Any) -> None:
    """Whatever overtakes what on the way: what came too early is refused and comes again, what came is kept."""
    sweep_id = server.create_sweep(lives.identity, PLAN)
    lease = Client(server.url, lives.identity.token).lease(0.0)
    assert lease.sweep_id == sweep_id
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {lives.identity.token}"}
    token = lease.fencing_token
    uploads: list[tuple[str, bytes]] = []
    for repeat in range(PLAN.repeats):
        run = make_run(sweep_id, PLAN.points()[0], repeat)
        uploads.append((f"/runs/{run.id}", encode(RunUpload(fencing_token=token, run=run))))
        for rail in (RAIL, COUNTER):
            for chunk in split(make_trace(rail, count=50), 20):
                message = ChunkUpload(fencing_token=token, chunk=chunk)
                uploads.append((f"/runs/{run.id}/traces/chunks", encode(message)))
    chance = random.Random(3)
    arriving = uploads * 3
    chance.shuffle(arriving)
    statuses: Counter[int] = Counter()
    while arriving:
        path, body = arriving.pop()
        answer = http_answer("PUT", f"{server.url}/api/v1{path}", body=body, headers=headers)
        statuses[answer.status] += 1
        if answer.status == 404:  # a chunk that overtook its run
            arriving.insert(chance.randrange(len(arriving) + 1), (path, body))
    assert set(statuses) == {200, 201, 404}
    assert (statuses[201], statuses[200]) == (len(uploads), 2 * len(uploads))
    with stored.session() as session:
        runs = queries.runs_of_sweep(session, sweep_id)
        assert len(runs) == PLAN.repeats
        for run in runs:
            traces = queries.power_traces(session, run.id)
            assert all(np.array_equal(trace.value, make_trace(trace.rail, count=50).value) for trace in traces)
            assert len(traces) == 2
    lives.finish(stored, sweep_id)
    lives.check(stored, sweep_id)


def test_half_an_upload_is_none(server: Any, stored: Any, lives: Any, tmp_path: Path) -> None:
    """A connection that is cut within a request leaves nothing behind, whatever its headers promised."""
    sweep_id = server.create_sweep(lives.identity, PLAN)
    lease = Client(server.url, lives.identity.token).lease(0.0)
    run = make_run(sweep_id, PLAN.points()[0], 0)
    body = encode(RunUpload(fencing_token=lease.fencing_token, run=run))
    head = (
        f"PUT /api/v1/runs/{run.id} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {lives.identity.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    for length in (0, 1, len(body) // 2, len(body) - 1):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(head + body[:length])
    with stored.session() as session:
        assert queries.runs_of_sweep(session, sweep_id) == []
    lives.finish(stored, sweep_id)
    lives.check(stored, sweep_id)
