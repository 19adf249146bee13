"""The watches powerlab has. A watch is one module in this package and one line here."""

from __future__ import annotations

from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watch, WatchProbe

WATCHES: tuple[Watch, ...] = ()


def probe_watches(sysroot: Sysroot) -> tuple[WatchProbe, ...]:
    """Ask every watch what it can tell; absent ones answer too."""
    return tuple(watch.probe(sysroot) for watch in WATCHES)
