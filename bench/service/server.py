"""The server under test: ``powerlab serve`` over SQLite or a throw-away PostgreSQL, and what both take."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from postgres_cluster import new_database, postgres_cluster

AS_SHIPPED = ("shared_buffers=128MB", "max_connections=100")
"""PostgreSQL's own defaults: what it says is stored is on disk."""


@contextmanager
def a_database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the address of an empty ``sqlite`` or ``postgresql`` database."""
    if kind == "sqlite":
        yield str(folder / "powerlab.db")
        return
    with postgres_cluster(AS_SHIPPED) as cluster:
        yield new_database(cluster)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Usage:
    """Processor time in s, of the server and of PostgreSQL's processes, and the server's largest resident set."""

    server_s: float = 0.0
    database_s: float = 0.0
    resident_mb: float = 0.0


@dataclass
class Server:
    """``powerlab serve`` as a process, always on the same port and database."""

    database: str
    lease_s: float
    port: int = field(default_factory=free_port)
    traces: str = "database"
    process: subprocess.Popen[str] | None = None
    _ended: Usage = field(default_factory=Usage)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; when this returns its port takes connections."""
        words = ["--port", str(self.port), "--database", self.database, "--lease-s", str(self.lease_s)]
        words += ["--traces", self.traces]
        command = [sys.executable, "-m", "powerlab.cli", "serve", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        if self.url not in self.process.stdout.readline():
            raise RuntimeError("the server did not start; its own words stand above")

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        if self.process is not None:
            self._ended = self.usage()
            self.process.kill()
            self.process.communicate()
            self.process = None

    def usage(self) -> Usage:
        """Return what was taken so far, by killed predecessors too."""
        if self.process is None:
            return self._ended
        own = psutil.Process(self.process.pid)
        resident_mb = max(self._ended.resident_mb, own.memory_info().rss / 1e6)
        return Usage(self._ended.server_s + cpu_s(own), database_cpu_s(self.database), resident_mb)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def database_cpu_s(address: str) -> float:
    """Return the processor time of a cluster's processes, those that ended included; 0 for SQLite."""
    folder = address.partition("host=")[2]
    if not folder:
        return 0.0
    number = int((Path(folder) / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
    head = psutil.Process(number)
    ended = head.cpu_times()
    return cpu_s(head) + ended.children_user + ended.children_system + sum(map(_cpu_or_0, head.children()))


def _cpu_or_0(process: psutil.Process) -> float:
    try:
        return cpu_s(process)
    except psutil.NoSuchProcess:
        return 0.0


@contextmanager
def running_server(database: str, lease_s: float = 60.0, traces: str = "database") -> Iterator[Server]:
    """Yield a running server; it ends with the block."""
    server = Server(database, lease_s, traces=traces)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def wait_until_idle(server: Server, most_s: float = 5.0) -> None:
    """Give a server time to finish what it does after an answer."""
    deadline = time.monotonic() + most_s
    while time.monotonic() < deadline:
        before = server.usage().server_s
        time.sleep(0.2)
        if server.usage().server_s - before < 0.01:
            return
