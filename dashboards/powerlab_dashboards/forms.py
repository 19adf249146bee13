"""What a browser sends with a form."""

from __future__ import annotations

from urllib.parse import parse_qs


def fields_of(body: bytes) -> dict[str, str]:
    """Return a form's fields as a browser sends them (application/x-www-form-urlencoded), none of an odd body."""
    try:
        return {name: values[0] for name, values in parse_qs(body.decode(), max_num_fields=10).items()}
    except ValueError:
        return {}
