"""The archive: the same content gives the same bytes, and no byte of it changes unnoticed.

A ZIP whose members are in the order of their names, without times and owners. Its comment is the SHA-256 of everything
before the comment, so that a change is noticed even where it changes no member; the manifest's hashes then say where.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from powerlab.domain.errors import PowerlabError

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that ZIP can express; stands in every member."""
_MODE = 0o100644 << 16
_UNIX = 3
_LEVEL = 6
_SEAL = "sha256:"
_SEAL_BYTES = len(_SEAL) + 64
_BLOCK_BYTES = 1 << 20
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)
"""What comes of reading a ZIP that was changed."""
MOST_BYTES = 1 << 30
"""Of one member, unpacked, that is read into memory."""


class ArchiveWriter:
    """Adds members, which must come in the order of their names, to a file that is open for writing and reading."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)

    def add(self, name: str, content: bytes) -> None:
        """Add a member."""
        self._zip.writestr(_info(name), content, compresslevel=_LEVEL)

    def add_file(self, name: str, path: Path) -> None:
        """Add a member from a file, a block in memory at a time."""
        with path.open("rb") as source, self._zip.open(_info(name), "w", force_zip64=True) as target:
            while block := source.read(_BLOCK_BYTES):
                target.write(block)

    def close(self) -> None:
        """Write the directory and the seal."""
        self._zip.comment = b"-" * _SEAL_BYTES
        self._zip.close()
        self._file.flush()
        size = self._file.seek(0, io.SEEK_END) - _SEAL_BYTES
        seal = f"{_SEAL}{_digest(self._file, size)}".encode()
        self._file.seek(size)
        self._file.write(seal)

    def abandon(self) -> None:
        """Let go of an archive that will not be finished."""
        with contextlib.suppress(OSError, ValueError):
            self._zip.close()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = _UNIX, _MODE
    return info


def _digest(file: BinaryIO, size: int) -> str:
    """Return the SHA-256 of a file's first bytes."""
    found = hashlib.sha256()
    file.seek(0)
    left = size
    while left and (block := file.read(min(left, _BLOCK_BYTES))):
        found.update(block)
        left -= len(block)
    return found.hexdigest()


class ArchiveReader:
    """Reads members; every method raises PowerlabError where the archive is damaged."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise PowerlabError(
                f"{path} is no bundle, or a damaged one ({error}); `powerlab bundle create` makes bundles."
            ) from error
        comment = self._zip.comment
        size = file.seek(0, io.SEEK_END) - len(comment)
        self.sealed = comment == f"{_SEAL}{_digest(file, size)}".encode()
        """Whether not one byte was changed since the archive was made."""

    def names(self) -> tuple[str, ...]:
        """Return the members' names."""
        return tuple(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Return a member's content."""
        if name not in self._zip.NameToInfo:
            raise PowerlabError(f"{self._path} has no {name}, so it is no bundle, or not a whole one.")
        try:
            info = self._zip.getinfo(name)
            if info.file_size > MOST_BYTES:
                raise PowerlabError(f"{self._path} is refused: {name} would unpack to {info.file_size} bytes.")
            with self._zip.open(info) as member:
                return member.read(MOST_BYTES + 1)
        except _DAMAGE as error:
            raise self.damaged(name) from error

    def copy(self, name: str, target: BinaryIO) -> str:
        """Write a member's content to a file and return its SHA-256."""
        found = hashlib.sha256()
        try:
            with self._zip.open(name) as member:
                while block := member.read(_BLOCK_BYTES):
                    found.update(block)
                    target.write(block)
        except _DAMAGE as error:
            raise self.damaged(name) from error
        return found.hexdigest()

    def damaged(self, what: str) -> PowerlabError:
        """Return what to raise where a member is not what the manifest says."""
        return PowerlabError(
            f"{self._path} was changed after it was made: {what} is not what its SHA-256 says; get the bundle again."
        )


@contextmanager
def reading(path: Path) -> Iterator[ArchiveReader]:
    """Open an archive.

    Raises:
        PowerlabError: it cannot be read, or is none.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read ({error.strerror}); give a bundle that can be.") from error
    with file:
        yield ArchiveReader(path, file)
