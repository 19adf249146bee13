"""Clocks as they are now: of each CPU cluster, of graphics processors, and of the memory where it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.nvml_library import Library
from powerlab.sysroot import Sysroot
from powerlab.throttling.clocks import shown_clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock in MHz, and what limits it to (None where nothing says so)."""

    name: str
    clock_mhz: float
    limit_mhz: float | None = None
    governor: str = ""


def read_clocks(sysroot: Sysroot, cards: tuple[Library, range] | None) -> tuple[Clock, ...]:
    """Return all clocks that can be read; one that cannot is left out, and is not 0 MHz."""
    return tuple(
        Clock(name=shown.name, clock_mhz=clock_mhz, limit_mhz=shown.limit_mhz, governor=shown.governor)
        for shown in shown_clocks(sysroot, cards)
        if (clock_mhz := shown.read_mhz()) is not None
    )
