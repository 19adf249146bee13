"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

_LIKENESS = 0.6


def meant(wrong: str, names: Sequence[str]) -> str:
    """Return `` (did you mean MAXN?)`` where a name is much like the wrong one, capitals or not, else nothing."""
    by_small = {name.lower(): name for name in reversed(names)}
    close = get_close_matches(wrong.lower(), list(by_small), n=1, cutoff=_LIKENESS)
    return f" (did you mean {by_small[close[0]]}?)" if close else ""
