"""A throw-away PostgreSQL: its own cluster in a temporary folder, on a Unix socket, gone when the tests are."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from memory import memory_folder
from powerlab.store.database import parse_address
from requires import missing

_ROOM_BYTES = 1 << 30
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=16MB", "max_connections=40")


def postgres_program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs."""
    found = shutil.which(name)
    if found is not None:
        return found
    for directory in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (directory / name).is_file():
            return str(directory / name)
    return missing(f"{name} is not installed (Debian: apt install postgresql)")


def _user() -> pwd.struct_passwd | None:
    """Return who runs the server: PostgreSQL refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return missing("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")


@dataclass
class Cluster:
    """A cluster that may be stopped and started again.

    Attributes:
        folder: where it lies.
        settings: what it is started with, beside its address.
    """

    folder: Path
    settings: Sequence[str]
    _identity: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        user = _user()
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        trust = ("-A", "trust", "-U", "powerlab", "--no-sync", "-E", "UTF8", "--locale=C")
        self._call("initdb", "-D", f"{self.folder}/data", *trust)

    @property
    def address(self) -> str:
        return f"postgresql://powerlab@/postgres?host={self.folder}"

    def start(self) -> None:
        chosen = (*self.settings, "listen_addresses=''", f"unix_socket_directories={self.folder}")
        options = " ".join(f"-c {one}" for one in chosen)
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-w", "-o", options, "start")

    def stop(self) -> None:
        """End it as a crash would: whoever is connected is cut off, and the next start recovers from the log."""
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "-w", "stop")

    def _call(self, program: str, *words: str) -> None:
        command = (postgres_program(program), *words)
        done = subprocess.run(command, check=False, cwd=self.folder, capture_output=True, text=True, **self._identity)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextmanager
def running_cluster(settings: Sequence[str], parent: Path | None = None) -> Iterator[Cluster]:
    """Yield a cluster that runs; ``parent`` is the folder to make it in, by default the usual one."""
    with tempfile.TemporaryDirectory(prefix="powerlab-pg-", dir=parent) as folder:
        cluster = Cluster(Path(folder), settings)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


@contextmanager
def postgres_cluster(settings: Sequence[str] = _FAST) -> Iterator[str]:
    """Yield the address of the cluster's database ``postgres``; benchmarks bring settings that lose nothing."""
    with running_cluster(settings, memory_folder(_ROOM_BYTES) if settings is _FAST else None) as cluster:
        yield cluster.address


def new_database(cluster: str, template: str | None = None) -> str:
    """Make a database in a cluster, empty or like one that nobody is connected to, and return its address."""
    name = f"test_{uuid.uuid4().hex}"
    like = "" if template is None else f" TEMPLATE {parse_address(template).database}"
    engine = create_engine(parse_address(cluster), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}{like}"))
    engine.dispose()
    return cluster.replace("/postgres?", f"/{name}?")


def drop_database(cluster: str, address: str) -> None:
    """Remove a database, whoever is connected to it."""
    engine = create_engine(parse_address(cluster), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"DROP DATABASE {parse_address(address).database} WITH (FORCE)"))
    engine.dispose()
