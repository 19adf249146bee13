"""The place in a list after which its next page begins, as an address writes it: ``2026-11-25T03:00:00+00:00~ID``."""

from __future__ import annotations

from datetime import datetime

_MARK = "~"


def place_after(at: datetime, identifier: str | int) -> str:
    """Return the place after an element with a time, UTC, and an identifier that tells it from others of that time."""
    return f"{at.isoformat()}{_MARK}{identifier}"


def place_in(text: str) -> tuple[datetime, str] | None:
    """Return the place that an address names; None for the beginning, and where it names none."""
    at, _, identifier = text.partition(_MARK)
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        return None
    return (found, identifier) if identifier and found.tzinfo is not None else None


def numbered_place_in(text: str) -> tuple[datetime, int] | None:
    """Return the same of a list whose identifiers are numbers."""
    found = place_in(text)
    if found is None or not found[1].isdecimal() or len(found[1]) > len(str(2**62)):
        return None
    return found[0], int(found[1])
