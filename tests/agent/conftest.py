"""A real server process that can be killed and started again, and an agent enrolled with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import urllib3

from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import EnrolmentCode, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.wire import decode, encode
from powerlab.store import open_store, queries
from powerlab_agent.client import Client
from powerlab_agent.state import Identity, save_identity
from server_examples import PLAN, capabilities, device

TESTS = Path(__file__).parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """``powerlab serve`` as a process of its own, always on the same port and database."""

    database: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[str] | None = None
    banner: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["serve", "--port", str(self.port), "--database", str(self.database)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "powerlab.cli", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.banner = self.process.stdout.readline() + self.process.stdout.readline()
        assert self.url in self.banner, self.process.stderr.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def post(self, path: str, message: object, kind: type) -> object:
        headers = {"Content-Type": "application/json"}
        reply = urllib3.request("POST", f"{self.url}/api/v1{path}", body=encode(message), headers=headers)
        assert reply.status < 300, reply.data
        return decode(reply.data, kind)

    def create_sweep(self, identity: Identity, plan: SweepPlan = PLAN) -> str:
        return self.post("/sweeps", SweepRequest(device_id=identity.device_id, plan=plan), SweepRecord).id

    def runs(self, sweep_id: str) -> list[Run]:
        """Read the database itself, which works whether the server runs or not."""
        with closing(open_store(self.database)) as store, store.session() as session:
            return queries.runs_of_sweep(session, sweep_id)

    def sweep(self, sweep_id: str) -> SweepRecord:
        with closing(open_store(self.database)) as store, store.session() as session:
            return queries.sweep(session, sweep_id)

    def trace_counts(self, sweep_id: str) -> list[int]:
        with closing(open_store(self.database)) as store, store.session() as session:
            runs = queries.runs_of_sweep(session, sweep_id)
            return [len(queries.power_traces(session, run.id)) for run in runs]


@pytest.fixture(scope="session")
def only_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(database=tmp_path_factory.mktemp("server") / "powerlab.db")
    yield server
    if server.process is not None:
        server.kill()


@pytest.fixture
def server(only_server: Server) -> Server:
    """One server for every test, for starting one takes a second; a test that killed it is told apart."""
    if only_server.process is None or only_server.process.poll() is not None:
        only_server.start()
    return only_server


@pytest.fixture
def identity(server: Server) -> Identity:
    code = server.post("/enrolment-codes", {}, EnrolmentCode).code
    name = f"board-{uuid.uuid4()}"
    reply = Client(server.url).enrol(EnrolRequest(code=code, device=device(name), capabilities=capabilities()))
    return Identity(server=server.url, device_id=reply.device_id, device_name=name, token=reply.token)


@pytest.fixture
def state(identity: Identity, tmp_path: Path) -> Path:
    save_identity(tmp_path / "agent", identity)
    return tmp_path / "agent"


@pytest.fixture
def sweep_id(server: Server, identity: Identity) -> str:
    return server.create_sweep(identity)


class FakeAgent:
    """``fake_agent.py`` as a process, in lockstep with the test."""

    def __init__(self, state: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(TESTS / "agent" / "fake_agent.py"), str(state)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
        )

    def wait_for_run(self) -> bool:
        """Wait until a run is measured; False where the agent ended instead."""
        return self.process.stdout.readline().startswith("measured")

    def go_on(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def measure(self, count: int) -> None:
        """Let it go on from ``count`` runs; it waits after the last of them."""
        for number in range(count):
            if number:
                self.go_on()
            assert self.wait_for_run(), self.process.stderr.read()

    def finish(self) -> tuple[int, str]:
        """Let it run to its end; return how many more runs it measured and what it logged."""
        more = 0
        self.go_on()
        while self.wait_for_run():
            more += 1
            self.go_on()
        _, log = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, log
        return more, log


@pytest.fixture
def start_agent(state: Path) -> Iterator[object]:
    agents: list[FakeAgent] = []

    def start(**environment: str) -> FakeAgent:
        agents.append(FakeAgent(state, **environment))
        return agents[-1]

    yield start
    for agent in agents:
        agent.process.kill()
        agent.process.communicate()
