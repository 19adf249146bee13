"""Says on standard error what a command has read from which source."""

from __future__ import annotations

import sys

from powerlab.domain.run import Run
from powerlab.sources.source import Source


def say(source: Source, words: str) -> None:
    """Say on standard error what was read from a source."""
    print(f"source: {source.name}, {words}", file=sys.stderr)


def say_run(source: Source, run: Run) -> None:
    """Say on standard error which run was read, and what the validity rules had to say about it."""
    say(source, f"run {run.id}")
    for finding in run.findings:
        print(f"  {finding.verdict} ({finding.rule}): {finding.detail}", file=sys.stderr)
