"""The Range header of a request for part of a file (RFC 9110, section 14)."""

from __future__ import annotations

import re

_ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the first byte that is wanted and the one after the last; None where that part does not exist.

    A header that is missing, malformed or asks for several parts is ignored, as the RFC allows: then all is wanted.

    Args:
        header: ``bytes=0-99``, ``bytes=100-`` or ``bytes=-100`` (the last 100).
        size: of the file, at least 1.
    """
    match = re.fullmatch(_ONE_RANGE, header.replace(" ", "")) if header else None
    if match is None or match.group(1, 2) == ("", ""):
        return 0, size
    first, last = match.group(1, 2)
    if first == "":
        return (max(0, size - int(last)), size) if int(last) else None
    if last and int(last) < int(first):
        return 0, size
    return (int(first), min(int(last) + 1 if last else size, size)) if int(first) < size else None
