"""A clock that a device shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownClock:
    """A clock that a device shows.

    Attributes:
        name: such as ``CPU 0-3``, ``GPU``, ``memory``, ``GPU0 clock``; unique on a device.
        read_mhz: reads it in MHz; None where it cannot be read now.
        limit_mhz: what limits it to; None where nothing says so.
        governor: of cpufreq or devfreq; empty where there is none.
    """

    name: str
    read_mhz: Callable[[], float | None]
    limit_mhz: float | None = None
    governor: str = ""
