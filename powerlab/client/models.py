"""Upload, list and download a server's models."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from powerlab.client.errors import ServerAwayError, StatusError
from powerlab.client.transport import Transport
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import StoredModelName, stored_model
from powerlab.protocol.model_records import ModelPage, ModelRecord, ModelUpload
from powerlab.protocol.wire import decode, encode

PART_BYTES = 4 << 20
_BLOCK_BYTES = 1 << 18
_TRIES = 6
_FIRST_WAIT_S = 0.25
_VERIFY_S = 300.0
"""The answer to the last part comes when the server has read the whole file again."""

Moved = Callable[[int, int], None]
"""Told how many bytes have moved, and of how many."""


class _Patience:
    """Waits longer after each failure in a row, and raises the last one."""

    def __init__(self) -> None:
        self._failures = 0

    def worked(self) -> None:
        """Start again."""
        self._failures = 0

    def failed(self, error: PowerlabError) -> None:
        """Wait before the next try; raises the error where it was one too many."""
        self._failures += 1
        if self._failures == _TRIES:
            raise error
        time.sleep(_FIRST_WAIT_S * 2 ** (self._failures - 1))


class ModelApi:
    """Uploads, finds and downloads models."""

    def __init__(self, api: Transport) -> None:
        self._api = api

    def upload(self, path: Path, name: str, moved: Moved) -> ModelRecord:
        """Send a file, or what the server lacks of it.

        Raises:
            PowerlabError: the file cannot be read or was changed meanwhile, or the server says no or stays away.
        """
        try:
            with path.open("rb", buffering=0) as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                upload = encode(ModelUpload(name=name, byte_count=file.tell()))
                record = decode(self._patiently("PUT", f"/models/{sha256}", upload), ModelRecord)
                patience = _Patience()
                while not record.complete:
                    moved(record.uploaded_bytes, record.byte_count)
                    file.seek(record.uploaded_bytes)
                    missing = record.byte_count - record.uploaded_bytes
                    part = file.read(min(PART_BYTES, record.max_append_bytes, missing))
                    if missing and not part:
                        raise PowerlabError(f"{path} became shorter while it was sent; upload it again.")
                    record = self._append(record, part, patience)
        except OSError as error:
            raise PowerlabError(f"{path} cannot be read ({error.strerror}); give the path of an ONNX file.") from error
        moved(record.byte_count, record.byte_count)
        return record

    def _append(self, record: ModelRecord, part: bytes, patience: _Patience) -> ModelRecord:
        """Send a part, and return what the server has then; after a failure, whatever it has."""
        path = f"/models/{record.sha256}"
        headers = {"Content-Type": "application/partial-upload", "Upload-Offset": str(record.uploaded_bytes)}
        try:
            after = decode(self._api.send("PATCH", path, part, headers, read_s=_VERIFY_S), ModelRecord)
        except StatusError as error:
            if error.kind != "mismatching-upload-offset":
                raise
            patience.failed(error)
        except ServerAwayError as error:
            patience.failed(error)
        else:
            patience.worked()
            return after
        return decode(self._patiently("GET", path), ModelRecord)

    def _patiently(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Ask again for a while where the server does not answer."""
        patience = _Patience()
        while True:
            try:
                return self._api.send(method, path, body)
            except ServerAwayError as error:
                patience.failed(error)

    def all(self, **fields: str | None) -> Iterator[ModelRecord]:
        """Yield complete models, newest first."""
        query: dict[str, str | int] = {key: value for key, value in fields.items() if value is not None}
        while True:
            page = self._api.get("/models", ModelPage, limit=500, **query)
            yield from page.items
            if page.next_cursor is None:
                return
            query["cursor"] = page.next_cursor

    def find(self, words: str) -> ModelRecord:
        """Return the one model of that name, of a SHA-256 that begins so, or of both.

        Raises:
            PowerlabError: there is none, or several.
        """
        name, _, digest = words.removeprefix("sha256:").partition("@sha256:")
        found = list(self.all(name=name, sha256=digest or None))
        if not found and not digest:
            found = list(self.all(sha256=name))
        if len(found) != 1:
            known = ": " + ", ".join(record.reference for record in found[:5]) if found else ""
            raise PowerlabError(
                f"{len(found) or 'no'} models on the server are {words!r}{known}; `powerlab models list` shows all."
            )
        return found[0]

    def download(self, record: ModelRecord, path: Path, moved: Moved) -> None:
        """Fetch a file; what an earlier try left beside it as ``.part`` is gone on with.

        Raises:
            PowerlabError: it cannot be written, the server stays away, or what came has another SHA-256.
        """
        part = path.with_name(f"{path.name}.part")
        try:
            self._fetch(record, part, moved)
            with part.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != record.sha256:
                part.unlink()
                raise PowerlabError(f"what arrived as {record.name} has the SHA-256 {found}; download it again.")
            part.replace(path)
        except OSError as error:
            raise PowerlabError(
                f"{path} cannot be written ({error.strerror}); give another file with --output."
            ) from error

    def _fetch(self, record: ModelRecord, part: Path, moved: Moved) -> None:
        patience = _Patience()
        while (there := part.stat().st_size if part.exists() else 0) < record.byte_count:
            try:
                begin, blocks = self._api.stream(f"/models/{record.sha256}/content", there, _BLOCK_BYTES)
                with part.open("r+b" if begin else "wb") as file:
                    file.seek(begin)
                    for block in blocks:
                        file.write(block)
                        moved(file.tell(), record.byte_count)
                    file.flush()
                    os.fsync(file.fileno())
            except ServerAwayError as error:
                patience.failed(error)


def full_names(api: Transport, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a plan's models, those of the server with their whole names: ``detector@sha256:ab12`` is enough to type.

    Raises:
        PowerlabError: there is no such model, or there are several.
    """
    return tuple(ModelApi(api).find(word).reference if _is_short(word) else word for word in words)


def _is_short(word: str) -> bool:
    if "/" in word or "sha256:" not in word:
        return False
    try:
        return not isinstance(stored_model(word), StoredModelName)
    except PowerlabError:
        return True
