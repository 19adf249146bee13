"""Control groups for a benchmark: a process that may use so much processor time and no more. Needs root."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_WAIT_S = 0.05
_TRIES = 40


def can_limit() -> bool:
    """Say whether this process may make control groups that limit processor time."""
    return os.geteuid() == 0 and os.access(_parent(), os.W_OK)


@contextmanager
def limited(pid: int, cores: float, period_us: int = 100_000) -> Iterator[None]:
    """Let a process and all its threads use no more than ``cores`` processors' time in each period.

    Raises:
        OSError: the kernel has no control group for processor time here, or the process may not make one.
    """
    group = _parent() / f"powerlab-bench-{os.getpid()}-{pid}"
    group.mkdir()
    try:
        quota_us = round(cores * period_us)
        if _is_unified():
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        _remove(group)


def _is_unified() -> bool:
    return (
        "cpu" in (ROOT / "cgroup.controllers").read_text().split() if (ROOT / "cgroup.controllers").exists() else False
    )


def _parent() -> Path:
    return ROOT if _is_unified() else ROOT / "cpu"


def _remove(group: Path) -> None:
    """Put the processes of a group back and remove it; one that ends meanwhile leaves it a moment later."""
    for process in (group / "cgroup.procs").read_text().split():
        if Path(f"/proc/{process}").exists():
            (group.parent / "cgroup.procs").write_text(process)
    for attempt in range(_TRIES):
        try:
            group.rmdir()
        except OSError:
            if attempt == _TRIES - 1:
                raise
            time.sleep(_WAIT_S)
        else:
            return
