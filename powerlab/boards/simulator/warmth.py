"""The temperature of a simulated board's silicon: one heat capacity over one resistance to the room."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

ROOM_C = 30.0
_K_PER_W = 1.1
_TIME_S = 20.0


class Warmth:
    """Approaches room + K/W x power with one time constant; the values stand in ``[simulation.thermal]``."""

    def __init__(self, simulation: Mapping[str, Any]) -> None:
        """Start at the temperature of the room."""
        table = simulation.get("thermal", {})
        self.room_c: float = table.get("room_c", ROOM_C)
        self.celsius = self.room_c
        self._k_per_w: float = table.get("k_per_w", _K_PER_W)
        self._time_s: float = table.get("time_s", _TIME_S)

    def follow(self, total_w: float, passed_s: float) -> None:
        """Move on by a time in s in which the board drew a power in W."""
        share = 1.0 - math.exp(-passed_s / self._time_s)
        self.celsius += (self.room_c + self._k_per_w * total_w - self.celsius) * share
