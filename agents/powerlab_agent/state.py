"""The agent's stored state: its identity, and a lock that makes it the only one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.wire import decode, encode

_IDENTITY = "identity.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which server the agent belongs to, how it proves it, and whom it speaks for: this machine, or what is named."""

    server: str
    device_id: str
    device_name: str
    token: str
    board: str | None = None
    sysroot: str | None = None


def save_identity(directory: Path, identity: Identity) -> None:
    """Write the identity, readable by this user alone from the first byte, and whole or not at all."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = directory / f"{_IDENTITY}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(encode(identity))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(directory / _IDENTITY)
    except OSError as error:
        raise PowerlabError(f"the agent's state cannot be written to {directory} ({error.strerror}).") from error


def load_identity(directory: Path) -> Identity:
    """Read the identity; raises PowerlabError where the agent is not enrolled."""
    try:
        data = (directory / _IDENTITY).read_bytes()
    except FileNotFoundError as error:
        raise PowerlabError(
            f"no agent is enrolled under {directory}; enrol it with `powerlab agent enrol --server URL --code CODE`."
        ) from error
    except OSError as error:
        raise PowerlabError(
            f"the agent's state in {directory} cannot be read ({error.strerror}); give another --state."
        ) from error
    return decode(data, Identity)


@contextmanager
def only_agent(directory: Path) -> Iterator[None]:
    """Hold the state directory's lock; raises PowerlabError where another agent does. The kernel frees it on a kill."""
    try:
        lock = (directory / "lock").open("w")
    except OSError as error:
        raise PowerlabError(f"the agent's state cannot be written to {directory} ({error.strerror}).") from error
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise PowerlabError(
                f"another agent runs with the state in {directory}; stop it, or give this one a --state of its own."
            ) from error
        yield
