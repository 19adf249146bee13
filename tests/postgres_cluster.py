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
from pathlib import Path

from sqlalchemy import create_engine, text

from powerlab.store.engine import parse_address
from requires import missing

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


@contextmanager
def postgres_cluster(settings: Sequence[str] = _FAST) -> Iterator[str]:
    """Yield the address of the cluster's database ``postgres``; benchmarks bring settings that lose nothing."""
    initdb, pg_ctl = postgres_program("initdb"), postgres_program("pg_ctl")
    user = _user()
    identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="powerlab-pg-") as folder:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = f"{folder}/data"

        def call(*command: str) -> None:
            done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, **identity)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"

        call(initdb, "-D", data, "-A", "trust", "-U", "powerlab", "--no-sync", "-E", "UTF8", "--locale=C")
        chosen = (*settings, "listen_addresses=''", f"unix_socket_directories={folder}")
        options = " ".join(f"-c {one}" for one in chosen)
        call(pg_ctl, "-D", data, "-l", f"{folder}/log", "-w", "-o", options, "start")
        try:
            yield f"postgresql://powerlab@/postgres?host={folder}"
        finally:
            call(pg_ctl, "-D", data, "-m", "immediate", "-w", "stop")


def new_database(cluster: str) -> str:
    """Make an empty database in a cluster and return its address."""
    name = f"test_{uuid.uuid4().hex}"
    engine = create_engine(parse_address(cluster), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return cluster.replace("/postgres?", f"/{name}?")
