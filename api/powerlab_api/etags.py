"""Comparing ETags."""

from __future__ import annotations


def matches(if_none_match: str, etag: str) -> bool:
    """Compare weakly, as RFC 9110 (13.1.2) wants: a proxy that compressed the answer made ``W/"..."`` of its ETag."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]
