"""Model uploads: announced, appended to, expired."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import check_digest, check_name
from powerlab.protocol.model_records import ModelUpload
from powerlab.store.errors import MisplacedError, TooLargeError
from powerlab.store.reads.models import model_row
from powerlab.store.tables import ModelPieceRow, ModelRow
from powerlab.store.tables.networks import PIECE_BYTES

UNFINISHED_S = 24 * 3600.0
"""How long an unfinished upload waits for more."""


def begin_upload(session: Session, sha256: str, upload: ModelUpload, now: datetime, max_bytes: int) -> bool:
    """Announce a file; False where it is there already, whole or in part.

    An unfinished upload that was announced with another size begins anew: of two sizes only one can be right.

    Raises:
        TooLargeError: the file is larger than ``max_bytes``.
        PowerlabError: the name, the SHA-256 or the size is impossible.
    """
    check_digest(sha256)
    check_name(upload.name)
    if upload.byte_count < 1:
        raise PowerlabError("an empty file is not a model; give the path of an ONNX file.")
    if upload.byte_count > max_bytes:
        raise TooLargeError(
            f"the model has {upload.byte_count} bytes and this server takes at most {max_bytes}; start it with a "
            "larger "
            "--max-model-mb, or make the model smaller."
        )
    session.execute(delete(ModelRow).where(ModelRow.expires_at <= now))
    row = session.get(ModelRow, sha256, with_for_update=True)
    if row is not None and row.byte_count != upload.byte_count:
        if row.completed_at is not None:
            raise PowerlabError(f"the file with that SHA-256 has {row.byte_count} bytes, not {upload.byte_count}.")
        session.delete(row)
        session.flush()
        row = None
    if row is not None:
        if row.completed_at is None:
            row.name, row.expires_at = upload.name, now + timedelta(seconds=UNFINISHED_S)
        return False
    session.add(
        ModelRow(
            sha256=sha256,
            name=upload.name,
            byte_count=upload.byte_count,
            uploaded_bytes=0,
            created_at=now,
            expires_at=now + timedelta(seconds=UNFINISHED_S),
        )
    )
    return True


def append(session: Session, sha256: str, offset: int, data: bytes, now: datetime) -> ModelRow:
    """Put bytes behind those that are there; nothing at all is stored where they cannot be.

    Raises:
        NotFoundError: no such upload was announced, or it was given up.
        MisplacedError: they do not begin where the last ones ended.
        PowerlabError: they go beyond the announced size.
    """
    row = model_row(session, sha256, now, lock=True)
    if offset != row.uploaded_bytes:
        raise MisplacedError(
            f"the bytes begin at {offset}, but the upload goes on at {row.uploaded_bytes}; send those from there on.",
            row.uploaded_bytes,
        )
    if offset + len(data) > row.byte_count:
        raise PowerlabError(
            f"the upload was announced with {row.byte_count} bytes, and these would make {offset + len(data)}; "
            "announce the right size."
        )
    _write(session, sha256, offset, data)
    if row.completed_at is None:
        row.uploaded_bytes = offset + len(data)
        row.expires_at = now + timedelta(seconds=UNFINISHED_S)
    return row


def _write(session: Session, sha256: str, offset: int, data: bytes) -> None:
    """Fill the last piece, then add new ones."""
    rest = memoryview(data)
    inside = offset % PIECE_BYTES
    if inside and rest:
        last = session.get_one(ModelPieceRow, (sha256, offset // PIECE_BYTES))
        last.payload = b"".join((last.payload, rest[: PIECE_BYTES - inside]))
        rest = rest[PIECE_BYTES - inside :]
    first = -(-offset // PIECE_BYTES)
    for number, start in enumerate(range(0, len(rest), PIECE_BYTES)):
        payload = bytes(rest[start : start + PIECE_BYTES])
        session.add(ModelPieceRow(sha256=sha256, position=first + number, payload=payload))
