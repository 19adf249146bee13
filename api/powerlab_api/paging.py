"""Pagination: fetch one item more than requested, to know whether there is a next page."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from powerlab.domain.errors import PowerlabError

_Item = TypeVar("_Item")
_Place = TypeVar("_Place")


def cut(found: Sequence[_Item], limit: int, place: Callable[[_Item], object]) -> tuple[tuple[_Item, ...], str | None]:
    """Return a page's items and the opaque cursor of what comes after them; None where nothing does.

    Args:
        found: up to ``limit + 1`` items.
        limit: items on a page.
        place: what :func:`place_of` gives back for the last item.
    """
    items = tuple(found[:limit])
    if len(found) <= limit:
        return items, None
    return items, base64.urlsafe_b64encode(msgspec.json.encode(place(items[-1]))).decode("ascii")


def place_of(cursor: str | None, kind: type[_Place]) -> _Place | None:
    """Return the place that :func:`cut` put into a cursor; raises PowerlabError where it did not make the cursor."""
    if cursor is None:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(cursor), type=kind)
    except (binascii.Error, ValueError, OverflowError) as error:
        raise PowerlabError("the cursor is not one that this server gave; start again without it.") from error
