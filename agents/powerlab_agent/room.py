"""Disk budget of the spool, and free space."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from powerlab.domain.errors import PowerlabError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the spool may take.

    Attributes:
        spool_bytes: the spool's file; six rails sampled 100 times a second take some 5 kB a second while they are
            recorded, so 2 GiB hold 5 days of nothing but recording.
        reserve_bytes: what the spool's traces leave free on its disk, for summaries of runs and for everybody else.
    """

    spool_bytes: int = 2048 * MIB
    reserve_bytes: int = 256 * MIB

    def __post_init__(self) -> None:
        if self.spool_bytes < MIB or self.reserve_bytes < 0:
            raise PowerlabError("the agent's spool needs 1 MiB or more, and a reserve of 0 or more.")


class SpoolUnwritableError(PowerlabError):
    """The spool takes no write now: the disk is full, or cannot be written. There may be room later."""


def free_bytes(directory: Path) -> int:
    """Return how much of a directory's disk this user may still take; raises OSError."""
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize


def in_words(count: int) -> str:
    """Return a number of bytes in the largest unit in which it is 1 or more."""
    for unit, size in (("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
