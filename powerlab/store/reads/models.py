"""Queries of uploaded models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import StoredModelName, stored_model
from powerlab.protocol.model_records import ModelRecord
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError, NotFoundError
from powerlab.store.tables import ModelPieceRow, ModelRow, PointRow, SweepRow, WorkloadRow
from powerlab.store.tables.networks import PIECE_BYTES


def to_model(row: ModelRow, max_append_bytes: int) -> ModelRecord:
    """Return what a row says."""
    return ModelRecord(
        sha256=row.sha256,
        name=row.name,
        reference=str(StoredModelName(name=row.name, sha256=row.sha256)),
        byte_count=row.byte_count,
        uploaded_bytes=row.uploaded_bytes,
        complete=row.completed_at is not None,
        created_at=row.created_at,
        completed_at=row.completed_at,
        expires_at=row.expires_at,
        max_append_bytes=max_append_bytes,
    )


def model_row(session: Session, sha256: str, now: datetime, *, lock: bool = False) -> ModelRow:
    """Return a model, complete or on its way; raises NotFoundError, also for an upload that was given up."""
    row = session.get(ModelRow, sha256, with_for_update=lock)
    if row is None or (row.expires_at is not None and row.expires_at <= now):
        raise NotFoundError(f"there is no model {sha256!r}; `powerlab models list` (GET /api/v1/models) lists them.")
    return row


def complete_model(session: Session, sha256: str, now: datetime) -> ModelRow:
    """Return a model that is whole and verified; raises NotFoundError."""
    row = model_row(session, sha256, now)
    if row.completed_at is None:
        raise NotFoundError(
            f"of the model {row.name} only {row.uploaded_bytes} of {row.byte_count} bytes are there; finish its upload."
        )
    return row


def list_models(
    session: Session,
    *,
    name: str | None = None,
    sha256: str | None = None,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
) -> list[ModelRow]:
    """Return complete models, newest first.

    Args:
        session: to ask.
        name: only models of this name.
        sha256: only models whose SHA-256 begins so.
        limit: at most so many.
        after: the (completed_at, sha256) of the last one seen.
    """
    wanted = (
        select(ModelRow)
        .where(ModelRow.completed_at.is_not(None))
        .order_by(ModelRow.completed_at.desc(), ModelRow.sha256.desc())
        .limit(limit)
    )
    if name is not None:
        wanted = wanted.where(ModelRow.name == name)
    if sha256 is not None:
        wanted = wanted.where(ModelRow.sha256.startswith(sha256, autoescape=True))
    if after is not None:
        wanted = wanted.where(tuple_(ModelRow.completed_at, ModelRow.sha256) < after)
    return list(session.scalars(wanted))


def check_models(session: Session, models: tuple[str, ...], now: datetime) -> None:
    """Refuse a plan's models where they lie on a server, but not here.

    Raises:
        PowerlabError: there is no such model, its upload is not finished, or it has another name.
    """
    for word in models:
        named = stored_model(word)
        if named is None:
            continue
        row = complete_model(session, named.sha256, now)
        if row.name != named.name:
            raise PowerlabError(f"the model sha256:{named.sha256} is named {row.name!r} here, not {named.name!r}.")


def check_asked_of(session: Session, device_id: str, sha256: str) -> None:
    """Refuse a device what no sweep asks it to measure.

    Raises:
        ForbiddenError: no sweep of the device names that model.
    """
    plans = (
        select(PointRow.id)
        .join(SweepRow, SweepRow.id == PointRow.sweep_id)
        .join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .where(SweepRow.device_id == device_id, WorkloadRow.model.endswith(f"@sha256:{sha256}", autoescape=True))
    )
    if session.scalar(plans.limit(1)) is None:
        raise ForbiddenError("no sweep of this agent's device asks for that model.")


def read_bytes(store: Store, sha256: str, start: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start`` up to, but without, ``stop``, one piece in memory at a time.

    Each piece is read in a session of its own: a slow reader holds no connection and no snapshot meanwhile.

    Raises:
        NotFoundError: the file is gone, or not so long.
    """
    while start < stop:
        with store.session() as session:
            payload = session.scalar(
                select(ModelPieceRow.payload).where(
                    ModelPieceRow.sha256 == sha256, ModelPieceRow.position == start // PIECE_BYTES
                )
            )
        inside = start % PIECE_BYTES
        part = b"" if payload is None else payload[inside : inside + stop - start]
        if not part:
            raise NotFoundError(f"byte {start} of the model {sha256} is no longer there; upload the model again.")
        yield part
        start += len(part)
