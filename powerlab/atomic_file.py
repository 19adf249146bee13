"""Atomic file writes: complete or not at all."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and its folder where there is none; whatever happens, readers find the old content or the new.

    Raises:
        OSError: it cannot be written; nothing is left of the attempt.
    """
    write_parts(path, (content,))


def write_parts(path: Path, parts: Iterable[bytes | memoryview], *, durable: bool = True) -> None:
    """Write a file as :func:`write_whole` does, one part after the other.

    Args:
        path: the file.
        parts: its content.
        durable: whether to wait until the disk has it; without, a machine that loses power may lose it or parts of it.

    Raises:
        OSError: it cannot be written; nothing is left of the attempt.
    """
    temporary = path.with_suffix(f".{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
