"""Cache of models that plans name by SHA-256: downloaded before a sweep, bounded in size.

A download that was cut off goes on where it ended. A file is used only while its bytes have the SHA-256 in its name,
which is looked at before every sweep.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import StoredModelName, stored_model
from powerlab_agent.client import UNAUTHORISED, Client, RefusedError, ServerUnreachableError

_log = logging.getLogger("powerlab.agent")


class _HaltedError(Exception):
    """Told to stop in the middle of a download; what has arrived stays."""


class ModelCache:
    """The files of one agent.

    Args:
        client: where they come from.
        folder: where they lie; made when it is needed.
        max_bytes: the most they may take together; those that were not used for longest make room.
    """

    def __init__(self, client: Client, folder: Path, max_bytes: int) -> None:
        self._client = client
        self._folder = folder
        self._max_bytes = max_bytes

    def fetch(self, words: Iterable[str], halted: Callable[[], bool]) -> dict[str, str] | None:
        """Return where the models of a plan lie that are named by a SHA-256, by the plan's word for them.

        Args:
            words: the plan's models; zoo names and paths are left out.
            halted: asked now and then; once it is true None is returned.

        Raises:
            ServerUnreachableError: the server is away; what has arrived is kept.
            RefusedError: the server does not know this agent.
            PowerlabError: the server has no such model, what it sends is something else, or there is no room.
        """
        wanted = [named for word in words if (named := stored_model(word)) is not None]
        keep = {self._path(named) for named in wanted}
        try:
            return {str(named): str(self._file(named, keep, halted)) for named in wanted}
        except _HaltedError:
            return None
        except OSError as error:
            raise PowerlabError(
                f"models cannot be kept in {self._folder} ({error.strerror}); free some space there, or start the "
                "agent with another --state."
            ) from error

    def _path(self, named: StoredModelName) -> Path:
        return self._folder / f"{named}.onnx"

    def _file(self, named: StoredModelName, keep: set[Path], halted: Callable[[], bool]) -> Path:
        path = self._path(named)
        if path.exists() and _sha256(path) == named.sha256:
            os.utime(path)
            return path
        path.unlink(missing_ok=True)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = self._folder / f"{named.sha256}.part"
        size = self._size(named)
        self._make_room(size, keep | {part})
        resumed = part.exists()
        self._download(named, part, size, halted)
        if _sha256(part) != named.sha256:
            part.unlink()
            if resumed:  # what an earlier life of this agent left may have been torn by a power cut
                return self._file(named, keep, halted)
            raise PowerlabError(f"what the server sent as {named} has another SHA-256; upload the model there again.")
        part.replace(path)
        _log.info("fetched %s, %d bytes", named, size)
        return path

    def _size(self, named: StoredModelName) -> int:
        try:
            return self._client.model(named.sha256).byte_count
        except RefusedError as error:
            if error.status == UNAUTHORISED:
                raise
            raise PowerlabError(f"the model {named} cannot be fetched: {error}") from error

    def _download(self, named: StoredModelName, part: Path, size: int, halted: Callable[[], bool]) -> None:
        """Bring the part to its full size, going on where it ends."""
        there = part.stat().st_size if part.exists() else 0
        if there >= size:
            return
        begin, blocks = self._client.model_content(named.sha256, there)
        with part.open("r+b" if begin else "wb") as file:
            file.truncate(begin)
            file.seek(begin)
            for block in blocks:
                file.write(block)
                if file.tell() > size:
                    break  # the SHA-256 will tell
                if halted():
                    raise _HaltedError
            if file.tell() < size:
                raise ServerUnreachableError(f"the download of {named} broke off at {file.tell()} of {size} bytes")
            file.flush()
            os.fsync(file.fileno())

    def _make_room(self, size: int, keep: set[Path]) -> None:
        """Remove what was not used for longest until a new file of that size fits."""
        found = sorted(
            ((entry, entry.stat()) for entry in self._folder.iterdir() if entry.is_file()),
            key=lambda item: item[1].st_mtime,
        )
        kept = sum(status.st_size for path, status in found if path in keep and path.suffix != ".part")
        if kept + size > self._max_bytes:
            raise PowerlabError(
                f"the plan's models take {kept + size} bytes or more, and this agent keeps at most {self._max_bytes}; "
                "start it with a larger --models-mb."
            )
        others = [(path, status.st_size) for path, status in found if path not in keep]
        excess = kept + size + sum(count for _, count in others) - self._max_bytes
        for path, count in others:
            if excess <= 0:
                return
            path.unlink()
            excess -= count


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
