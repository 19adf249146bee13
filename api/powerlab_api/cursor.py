"""Opaque pagination cursors, so that their content may change."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime

import msgspec

from powerlab.domain.errors import PowerlabError


def to_cursor(at: datetime, identifier: str) -> str:
    """Return the cursor of the last item of a page."""
    return base64.urlsafe_b64encode(msgspec.json.encode((at, identifier))).decode("ascii")


def from_cursor(cursor: str | None) -> tuple[datetime, str] | None:
    """Return what :func:`to_cursor` put in; raises PowerlabError where it did not make the cursor."""
    if cursor is None:
        return None
    try:
        at, identifier = msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=tuple[datetime, str])
        if at.tzinfo is None:
            raise ValueError("the time has no zone")
        return at.astimezone(UTC), identifier
    except (binascii.Error, ValueError, OverflowError) as error:
        raise PowerlabError("the cursor is not one that this server gave; start again without it.") from error


def from_counted_cursor(cursor: str | None) -> tuple[datetime, int] | None:
    """Do as :func:`from_cursor` where items are counted instead of named."""
    found = from_cursor(cursor)
    if found is None:
        return None
    at, identifier = found
    if not identifier.isdecimal() or not identifier.isascii():
        raise PowerlabError("the cursor is not one of this list; start again without it.")
    return at, int(identifier)
