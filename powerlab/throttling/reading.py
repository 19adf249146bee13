"""Shared by the watches: read short texts and integers from files that may be missing, unreadable or hold anything."""

from __future__ import annotations

from powerlab.power.sources.scan import parse_integer
from powerlab.sysroot import Sysroot


def first_line(sysroot: Sysroot, path: str) -> str:
    """Return a file's first line; the empty text where it cannot be read.

    sysfs files have one line. A simulated one that is rewritten in place may show the rest of a longer text behind it.
    """
    try:
        return sysroot.read(path).partition("\n")[0].strip()
    except OSError:
        return ""


def integer(sysroot: Sysroot, path: str) -> int | None:
    """Return the integer in a file; None where there is none."""
    try:
        return parse_integer(first_line(sysroot, path))
    except ValueError:
        return None


def counted(number: int, word: str) -> str:
    """Return ``1 core`` or ``2 cores``."""
    return f"{number} {word}{'s' * (number != 1)}"


def listed(names: list[str], most: int = 4) -> str:
    """Return a few names, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
