"""Parse submitted forms."""

from __future__ import annotations

from urllib.parse import parse_qs


def fields_of(body: bytes) -> dict[str, str]:
    """Return the fields of a form (application/x-www-form-urlencoded); empty if the body is malformed."""
    try:
        return {name: values[0] for name, values in parse_qs(body.decode(), max_num_fields=10).items()}
    except ValueError:
        return {}
