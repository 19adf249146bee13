"""The line to the server is cut, cuts answers short, loses them, and is slow."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import urllib3

from faults.bad_line import FATES, bad_line
from faults.lives import PLAN
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, RunUpload
from powerlab.protocol.wire import encode
from powerlab.store import queries
from powerlab_agent.client import Client
from powerlab_agent.state import save_identity
from server_examples import COUNTER, RAIL, make_run, make_trace

SWEEPS = int(os.environ.get("POWERLAB_FAULT_LINES", "5"))


def test_every_run_arrives_once_over_any_line(server: Any, stored: Any, lives: Any) -> None:
    fates: Counter[str] = Counter()
    for seed in range(SWEEPS):
        sweep_id = server.create_sweep(lives.identity, PLAN)
        with bad_line(server.port, seed) as line:
            save_identity(lives.state, replace(lives.identity, server=line.url))
            lives.finish(stored, sweep_id)
            fates += line.fates
        lives.check(stored, sweep_id)
    save_identity(lives.state, lives.identity)
    assert set(fates) >= set(FATES[1 : SWEEPS + 1])
    sys.stdout.write(f"{SWEEPS} sweeps over {fates.total()} connections: {dict(fates.most_common())}\n")


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
        answer = urllib3.request("PUT", f"{server.url}/api/v1{path}", body=body, headers=headers)
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


def test_half_an_upload_is_none(server: Any, stored: Any, lives: Any, tmp_path: Path) -> None:
    """A connection that is cut within a request leaves nothing behind, whatever its headers promised."""
    import socket

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
