"""The header ``Retry-After`` (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after_s(fields: Mapping[str, str]) -> float | None:
    """Return after how many seconds a server wants to be asked again; None where it does not say so as the RFC has it.

    A date is held against the date of the answer itself, for a device's own clock may be years off.

    Args:
        fields: the answer's, found whatever the case of their names.
    """
    said = fields.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]+", said):
        return float(said)
    then = _date(said)
    if then is None:
        return None
    now = _date(fields.get("Date", "")) or datetime.now(UTC)
    return max(0.0, (then - now).total_seconds())


def _date(text: str) -> datetime | None:
    """Return an HTTP-date in any of its three forms (RFC 9110, section 5.6.7), which are all in UTC."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
