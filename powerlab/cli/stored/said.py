"""Says on standard error what a command has read from which source."""

from __future__ import annotations

import sys

from powerlab.sources.source import Source


def say(source: Source, words: str) -> None:
    """Say on standard error what was read from a source."""
    print(f"source: {source.name}, {words}", file=sys.stderr)
