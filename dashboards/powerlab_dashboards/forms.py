"""Parse submitted forms, and the address they lead to."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

_MOST_FIELDS = 500
"""A form for a sweep has a field for every model, mode and device that is ticked."""


def fields_of(body: bytes) -> dict[str, str]:
    """Return the fields of a form (application/x-www-form-urlencoded); empty if the body is malformed."""
    try:
        return {name: values[0] for name, values in parse_qs(body.decode(), max_num_fields=10).items()}
    except ValueError:
        return {}


def lists_of(query: str) -> dict[str, list[str]]:
    """Return every value of each field of a form or an address; empty if it is malformed or has too many."""
    try:
        return parse_qs(query, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return {}


def own_address(wanted: str) -> str:
    """Return the address to redirect to; the home page if a browser might take ``wanted`` to another server."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return "/"
    own = wanted.startswith("/") and not parts.scheme and not parts.netloc and not wanted.startswith(("//", "/\\"))
    return wanted if own and wanted.isprintable() and wanted.isascii() else "/"
