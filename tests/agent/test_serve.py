"""The server process: how it ends, and what it keeps to itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from agent_server import Server
from forked_program import ForkedProgram
from patient_http import http_answer
from powerlab.store import Store, open_store
from powerlab.store.tables import SweepSummaryRow
from powerlab.store.writes import control
from simulation_truth import wait_until


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ForkedProgram]:
    words = ["serve", "--port", "0", "--database", str(tmp_path / "p.db")]
    environment = {**os.environ, "POWERLAB_OPERATOR_TOKEN": "s3cret-word"}
    process = ForkedProgram(
        ["-m", "powerlab.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    yield process
    process.kill()
    process.communicate()


@pytest.mark.campaign(minutes=0.5)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_in_order(process: ForkedProgram, tmp_path: Path, number: signal.Signals) -> None:
    banner = process.stdout.readline()
    code = process.stdout.readline().split()[-1]
    address = banner.split()[-1]
    guess = {"Authorization": "Bearer my-own-guess", "Content-Type": "application/json"}
    assert http_answer("GET", f"{address}/api/v1/health").status == 200
    assert http_answer("POST", f"{address}/api/v1/jobs/lease", headers=guess, body=b"{}").status == 401
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    for secret in ("s3cret-word", "my-own-guess", code):
        assert secret not in output + errors
    assert not (tmp_path / "p.db-wal").exists()  # closed, not cut off


@pytest.mark.campaign(minutes=0.5)
def test_a_server_summarises_what_is_over(tmp_path: Path) -> None:
    server = Server(tmp_path / "p.db")
    server.start()
    try:
        identity = server.enrol()
        sweep = server.create_sweep(identity)
        server.kill()
        with closing(open_store(server.database)) as store, store.write() as session:
            control.cancel(session, sweep, by="ann", now=store.clock())
        server.start()
        with closing(open_store(server.database)) as store:
            wait_until(lambda: _kept(store) == [sweep])
    finally:
        server.kill()


def _kept(store: Store) -> list[str]:
    with store.session() as session:
        return list(session.scalars(select(SweepSummaryRow.sweep_id)))


def test_a_server_told_to_end_before_it_listens_ends_too(process: ForkedProgram) -> None:
    assert "powerlab serves" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
