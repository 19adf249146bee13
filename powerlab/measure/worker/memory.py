"""How much memory a worker process took.

The kernel counts it (``VmHWM``, proc_pid_status(5)): the most that was resident at any time, with the engine's code,
the weights while they were packed, and every buffer. ``getrusage`` would not do: its peak survives ``exec``, so that of
a worker would be no less than that of the process that started it.
"""

from __future__ import annotations

import re

from powerlab.sysroot import Sysroot

_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_BYTES_PER_KB = 1024
"""The kernel writes kB and means KiB."""


def peak_memory_bytes(pid: int) -> int | None:
    """Return the most memory that a process had resident so far; None where the kernel does not say, or it ended.

    A simulated board's worker runs on this machine, so it is always this machine that is asked.
    """
    try:
        status = Sysroot().read(f"/proc/{pid}/status")
    except OSError:
        return None
    found = _PEAK.search(status)
    return None if found is None else _BYTES_PER_KB * int(found[1])
