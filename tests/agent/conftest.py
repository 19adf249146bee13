"""A real server process that can be killed and started again, and an agent enrolled with it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_server import Server
from forked_program import ForkedProgram
from powerlab_agent.state import Identity, save_identity

TESTS = Path(__file__).parents[1]


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
    return server.enrol()


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
        self.process = ForkedProgram(
            [TESTS / "agent" / "fake_agent.py", state],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS / 'support'}", **environment},
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
