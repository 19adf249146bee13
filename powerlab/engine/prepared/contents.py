"""Digests of files, which are remembered as long as the file stays as it is and the machine does not start again.

As git's index does, a file counts as unchanged while its inode, size and times are the same; nothing but a change of
the clock can hide a write from the time of the last change. A file written within the last seconds is not trusted yet:
it may be written once more without its times telling.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from powerlab.atomic_file import write_parts

_CHUNK_BYTES = 4 << 20
_SETTLED_NS = 2_000_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Stamp = tuple[int, int, int, int, int]


class _Remembered(msgspec.Struct, frozen=True):
    path: str
    stamp: Stamp
    boot: str
    digest: bytes


def stamp(path: Path) -> Stamp:
    """Return what changes whenever a file is written or replaced.

    Raises:
        OSError: there is no such file.
    """
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def file_digest(path: Path, threads: int, *, begin: int = 0, memory: Path | None = None) -> bytes:
    """Return the SHA-256 of the SHA-256 digests of a file's chunks, which several threads compute.

    Args:
        path: the file.
        threads: how many compute.
        begin: bytes at the beginning that do not count.
        memory: where the digest is remembered; None: nowhere.

    Raises:
        OSError: it cannot be read.
    """
    now, begun_ns = stamp(path), time.time_ns()
    here = _Remembered(str(path.absolute()), now, _boot(), b"")
    if memory is not None and (known := _recall(memory)) and msgspec.structs.replace(known, digest=b"") == here:
        return known.digest
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size

        def chunk(at: int) -> bytes:
            return hashlib.sha256(os.pread(file.fileno(), _CHUNK_BYTES, at)).digest()

        with ThreadPoolExecutor(threads) as pool:
            digest = hashlib.sha256(b"".join(pool.map(chunk, range(begin, size, _CHUNK_BYTES)))).digest()
    settled = begun_ns - max(now[3:]) > _SETTLED_NS
    if memory is not None and settled and stamp(path) == now:
        _remember(memory, msgspec.structs.replace(here, digest=digest))
    return digest


def parts_digest(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the digest that :func:`file_digest` finds of a file of these bytes."""
    chunks: list[bytes] = []
    current, left = hashlib.sha256(), _CHUNK_BYTES
    for part in parts:
        view = memoryview(part)
        while view.nbytes >= left:
            current.update(view[:left])
            chunks.append(current.digest())
            view, current, left = view[left:], hashlib.sha256(), _CHUNK_BYTES
        current.update(view)
        left -= view.nbytes
    if left < _CHUNK_BYTES:
        chunks.append(current.digest())
    return hashlib.sha256(b"".join(chunks)).digest()


def _recall(memory: Path) -> _Remembered | None:
    try:
        return msgspec.msgpack.decode(memory.read_bytes(), type=_Remembered)
    except (OSError, msgspec.MsgspecError):
        return None  # then it is computed


def _remember(memory: Path, found: _Remembered) -> None:
    try:
        write_parts(memory, (msgspec.msgpack.encode(found),), durable=False)
    except OSError:
        return  # a full disk costs the next process the time to compute it again


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""
