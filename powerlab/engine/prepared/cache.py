"""The cache of prepared models: files that processes map, checked before they are used, and no more than a given size.

``POWERLAB_CACHE`` says how much room it may take (``500M``, ``2G``); without it there is no cache. It lies in
``$XDG_CACHE_HOME/powerlab/engine``. Whatever is wrong with a file or the disk, the model is prepared anew.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import platformdirs
from msgspec import Struct

from powerlab.atomic_file import write_parts
from powerlab.domain.errors import PowerlabError
from powerlab.engine.prepared import codec
from powerlab.engine.prepared.contents import file_digest, parts_digest
from powerlab.engine.prepared.prepared import Prepared

VARIABLE = "POWERLAB_CACHE"
_SUFFIX = ".prepared"
_ABANDONED_S = 3600
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Entry(Struct, frozen=True, kw_only=True):
    """A file of the cache.

    Attributes:
        path: where it lies.
        name: of the model.
        size_bytes: how long it is.
        used_ns: when it was last used, since 1970.
    """

    path: Path
    name: str
    size_bytes: int
    used_ns: int


class Cache(Struct, frozen=True, kw_only=True):
    """A folder of prepared models.

    Attributes:
        folder: where they lie.
        room_bytes: what they may take together.
    """

    folder: Path
    room_bytes: int

    def memory(self, name: str) -> Path:
        """Return where the digest of a file is remembered."""
        return self.folder / f"{name}.digest"

    def find(self, key: str, threads: int) -> Prepared | None:
        """Return the model of a key, whose arrays lie in the mapped file; None where there is none, or no sound one."""
        path = self._path(key)
        try:
            with path.open("rb") as file:
                data, mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), os.fstat(file.fileno())
            head = codec.MAGIC + file_digest(path, threads, begin=codec.HEAD_BYTES, memory=self.memory(key))
            if data[: codec.HEAD_BYTES] != head or not os.path.samestat(mapped, path.stat()):
                return None  # damaged, another version's, or replaced by another process while it was read
            prepared = codec.read(memoryview(data), key)
            os.utime(self._used(key))
        except (OSError, ValueError, codec.DamagedError):
            return None
        return prepared

    def keep(self, key: str, prepared: Prepared) -> None:
        """Write a model, unless it takes more than all the room or the disk is full; the oldest make room for it."""
        size = sum(memoryview(part).nbytes for part in codec.parts(key, prepared)) + codec.HEAD_BYTES
        if size > self.room_bytes:
            return
        head = codec.MAGIC + parts_digest(codec.parts(key, prepared))
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._shrink(self.room_bytes - size)
            write_parts(self._path(key), (head, *codec.parts(key, prepared)), durable=False)
            self._used(key).touch()

    def entries(self) -> list[Entry]:
        """Return what is there, the latest used first."""
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(OSError, ValueError):  # removed meanwhile, or empty
                used = self._used(path.stem)
                moment = (used if used.exists() else path).stat().st_mtime_ns
                size = path.stat().st_size
                found.append(Entry(path=path, name=_name_in(path), size_bytes=size, used_ns=moment))
        return sorted(found, key=lambda entry: -entry.used_ns)

    def clear(self) -> list[Entry]:
        """Remove everything, and return what was there; processes that have it mapped keep it.

        Raises:
            PowerlabError: it cannot be removed.
        """
        entries = self.entries()
        try:
            for path in self.folder.glob("*"):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise PowerlabError(f"the cache {self.folder} cannot be cleared ({error.strerror}).") from None
        return entries

    def _shrink(self, room_bytes: int) -> None:
        """Remove what was not used for the longest until what is left fits, and what a process that died has begun."""
        for begun in self.folder.glob("*.tmp"):
            if time.time() - begun.stat().st_mtime > _ABANDONED_S:
                begun.unlink(missing_ok=True)
        for entry in self.entries():
            room_bytes -= entry.size_bytes
            if room_bytes < 0:
                for path in (entry.path, self._used(entry.path.stem), self.memory(entry.path.stem)):
                    path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _used(self, key: str) -> Path:
        return self.folder / f"{key}.used"


def cache_folder() -> Path:
    """Return where prepared models lie."""
    return platformdirs.user_cache_path("powerlab") / "engine"


def configured_cache() -> Cache | None:
    """Return the cache that ``POWERLAB_CACHE`` asks for; None where it is off.

    A folder that belongs to somebody else is not used: what lies there decides what this process computes.

    Raises:
        PowerlabError: the variable is no size.
    """
    room_bytes = room(os.environ.get(VARIABLE, "off"))
    if room_bytes == 0 or not _is_own(folder := cache_folder()):
        return None
    return Cache(folder=folder, room_bytes=room_bytes)


def room(text: str) -> int:
    """Return the bytes that a setting such as ``2G`` means; 0 for ``off``.

    Raises:
        PowerlabError: it is no size.
    """
    if text in ("", "off"):
        return 0
    match = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", text)
    if match is None:
        raise PowerlabError(f"{VARIABLE} is {text[:40]!r}; give a size such as 500M or 2G, or off.")
    return int(match[1]) * _UNITS[match[2]]


def _name_in(path: Path) -> str:
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        memoryview(data) as view,
    ):
        return codec.name_in(view)


def _is_own(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        status = folder.stat()
        return status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return True  # it is yet to be made


def through_cache(
    cache: Cache,
    key: Callable[[], str | None],
    threads: int,
    make: Callable[[], Prepared],
    is_whole: Callable[[], bool],
) -> Prepared:
    """Return a model from the cache, or make it and keep it there.

    Args:
        cache: where to look.
        key: returns the key of the model as it is now; None where it has none.
        is_whole: tells whether the key tells all that decides what is prepared.
        threads: that read and verify it.
        make: prepares the model.
    """
    wanted = key()
    found = None if wanted is None else cache.find(wanted, threads)
    if found is None:
        found = make()
        if wanted is not None and is_whole() and key() == wanted:  # the model's file is what it was
            cache.keep(wanted, found)
    return found
