"""Completion of a model upload: only a file with the announced SHA-256 becomes a model."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import partial

from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.onnx_outline import check_outline
from powerlab.store import Store
from powerlab.store.errors import ConflictError
from powerlab.store.reads.models import model_row, read_bytes
from powerlab.store.tables import ModelRow
from powerlab.store.writes.audit import record


def finish_upload(store: Store, sha256: str, actor: str) -> None:
    """Verify a file whose bytes are all there, and make it usable; of a complete one nothing changes.

    The bytes are read without a lock, for their reading may take seconds: nobody changes them any more, and where the
    upload was begun anew meanwhile its time of creation is another one.

    Args:
        store: where it lies.
        sha256: what its bytes should have.
        actor: for the audit log.

    Raises:
        PowerlabError: the bytes are others, or no ONNX model; the upload is thrown away.
        ConflictError: somebody began the upload anew at the same moment.
    """
    with store.session() as session:
        row = model_row(session, sha256, store.clock())
        if row.completed_at is not None:
            return
        created_at, byte_count = row.created_at, row.byte_count
    wrong = _what_is_wrong(store, sha256, byte_count)
    with store.write() as session:
        row = model_row(session, sha256, store.clock(), lock=True)
        if row.completed_at is not None:
            return
        if row.created_at != created_at or row.uploaded_bytes != row.byte_count:
            raise ConflictError("the upload was restarted at the same moment; try again.")
        _settle(session, row, wrong, store.clock(), actor)
    if wrong is not None:
        raise PowerlabError(wrong)


def _what_is_wrong(store: Store, sha256: str, byte_count: int) -> str | None:
    found = hashlib.sha256()
    for part in read_bytes(store, sha256, 0, byte_count):
        found.update(part)
    if found.hexdigest() != sha256:
        return (
            f"the uploaded bytes have the SHA-256 {found.hexdigest()}, not {sha256}; they are thrown away, so upload "
            "the file again, and do not change it meanwhile."
        )
    try:
        check_outline(partial(_some, store, sha256, byte_count), byte_count)
    except PowerlabError as error:
        return str(error)
    return None


def _some(store: Store, sha256: str, byte_count: int, start: int, count: int) -> bytes:
    return b"".join(read_bytes(store, sha256, start, min(start + count, byte_count)))


def _settle(session: Session, row: ModelRow, wrong: str | None, now: datetime, actor: str) -> None:
    if wrong is None:
        row.completed_at, row.expires_at = now, None
    else:
        session.delete(row)
    detail = {"name": row.name, "byte_count": row.byte_count}
    record(session, now, actor, "upload model" if wrong is None else "throw upload away", row.sha256, **detail)
