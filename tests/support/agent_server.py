"""``powerlab serve`` as a process that can be killed and started again, for the tests of agents and of faults."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from forked_program import ForkedProgram
from free_port import free_port
from patient_http import http_answer
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import EnrolmentCode, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.wire import decode, encode
from powerlab.store import open_store
from powerlab.store.reads import queries
from powerlab_agent.client import Client
from powerlab_agent.state import Identity
from server_examples import PLAN, capabilities, device


@dataclass
class Server:
    """``powerlab serve`` as a process of its own, always on the same port and database."""

    database: Path
    port: int = field(default_factory=free_port)
    command: tuple[str, ...] = ("-m", "powerlab.cli", "serve")
    process: ForkedProgram | subprocess.Popen[str] | None = None
    banner: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it; with an environment, which may bring a library of its own, in a new Python."""
        words = [*self.command, "--port", str(self.port), "--database", str(self.database)]
        with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody reads would be full one day
            if environment is None:
                self.process = ForkedProgram(words, stdout=subprocess.PIPE, stderr=log)
            else:
                command = [sys.executable, *words]
                self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
            self.banner = self.process.stdout.readline() + self.process.stdout.readline()
            if self.url not in self.banner:
                log.seek(0)
                raise AssertionError(log.read())

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def post(self, path: str, message: object, kind: type) -> object:
        # A connection that is kept may be closed by the server at the instant of the next request, some seconds later.
        headers = {"Content-Type": "application/json", "Connection": "close"}
        reply = http_answer("POST", f"{self.url}/api/v1{path}", body=encode(message), headers=headers)
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

    def enrol(self) -> Identity:
        """Enrol a device that only the tests know."""
        code = self.post("/enrolment-codes", {}, EnrolmentCode).code
        name = f"board-{uuid.uuid4()}"
        reply = Client(self.url).enrol(EnrolRequest(code=code, device=device(name), capabilities=capabilities()))
        return Identity(server=self.url, device_id=reply.device_id, device_name=name, token=reply.token)
