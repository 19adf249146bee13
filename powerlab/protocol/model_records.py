"""Records of uploaded models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUpload:
    """Announces the upload of a file under the SHA-256 of its bytes.

    Attributes:
        name: for people; see :mod:`powerlab.domain.model_name`.
        byte_count: the whole file's size.
    """

    name: str
    byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecord:
    """A model on the server, or one on its way there.

    Attributes:
        sha256: of the whole file, in hex.
        name: for people.
        reference: how a plan names it: ``NAME@sha256:DIGEST``.
        byte_count: the whole file's size.
        uploaded_bytes: how many of them are there; the offset at which an upload goes on.
        complete: whether the file is whole, and its SHA-256 was found to be the one it is named by.
        created_at: when its upload began, UTC.
        completed_at: when it became usable, UTC; None before.
        expires_at: when an unfinished upload is thrown away unless it goes on, UTC; None once it is complete.
        max_append_bytes: the most that one request may append.
    """

    sha256: str
    name: str
    reference: str
    byte_count: int
    uploaded_bytes: int
    complete: bool
    created_at: datetime
    completed_at: datetime | None
    expires_at: datetime | None
    max_append_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPage:
    """Some complete models, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[ModelRecord, ...]
    next_cursor: str | None = None
