"""How many processors this process may use: its affinity mask, cut down to the whole ones of a quota."""

from __future__ import annotations

import math
import os

from powerlab.cgroups import quota_cores
from powerlab.sysroot import Sysroot


def usable_cpus(sysroot: Sysroot | None = None) -> int:
    """Return how many threads of this process can compute at the same time, 1 at least.

    Args:
        sysroot: where the quota of control groups is read; None: this machine.
    """
    mask = len(os.sched_getaffinity(0))
    quota = quota_cores(sysroot or Sysroot())
    return mask if quota is None else max(1, min(mask, math.floor(quota)))


def too_many(threads: int, usable: int) -> str:
    """Return a sentence where ``threads`` are more than can compute at the same time, else an empty text."""
    if threads <= usable:
        return ""
    processors = "one processor" if usable == 1 else f"{usable} processors"
    return (
        f"{threads} threads share the {processors} that this process may use, so each waits for others and all are "
        f"slower; use {usable}, or widen the affinity mask or the quota."
    )
