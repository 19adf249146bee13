"""Thermal zones, and what they do to the clocks (kernel, driver-api/thermal/sysfs-api)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part

_ZONES = "/sys/class/thermal/thermal_zone"
_COOLING = "/sys/class/thermal/cooling_device0"
_COOLING_STATES = 10
_HYSTERESIS_C = 2.0
_STEP_PER_K_S = 0.02
"""How fast clocks are taken away, as a share of the highest for each K above the trip and each s."""
_STEP_BACK_PER_S = 0.05
_LEAST_SHARE = 0.2


class Thermal(Part):
    """Zones, and one cooling device that stands for the clocks.

    Table: ``zones``, each a ``type``, and ``fixed_c`` for a sensor that always says the same; ``trip_c``, above which
    clocks are taken away step by step; ``critical_c``; ``room_c``, ``k_per_w`` and ``time_s``, which the loop reads.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start cool."""
        super().__init__(board, table, variant)
        self._share = 1.0

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield zones with their trips, and the cooling device that stands for the clocks."""
        room = str(round(self.table["room_c"] * 1000))
        for number, zone in enumerate(self.table["zones"]):
            yield f"{_ZONES}{number}/type", zone["type"]
            yield f"{_ZONES}{number}/temp", str(round(zone["fixed_c"] * 1000)) if "fixed_c" in zone else room
            if "fixed_c" in zone:
                continue
            yield f"{_ZONES}{number}/mode", "enabled"
            for trip, kind in ((0, "passive"), (1, "critical")):
                limit_c = self.table["trip_c" if kind == "passive" else "critical_c"]
                yield f"{_ZONES}{number}/trip_point_{trip}_type", kind
                yield f"{_ZONES}{number}/trip_point_{trip}_temp", str(round(limit_c * 1000))
                yield f"{_ZONES}{number}/trip_point_{trip}_hyst", str(round(_HYSTERESIS_C * 1000))
        yield f"{_COOLING}/type", "cpufreq-cpu0"
        yield f"{_COOLING}/max_state", str(_COOLING_STATES)
        yield f"{_COOLING}/cur_state", "0"

    def tick(self, moment: Moment) -> None:
        """Move the temperatures and, above the trip, the clocks."""
        above_c = moment.warmth_c - self.table["trip_c"]
        if above_c > 0.0:
            self._share -= _STEP_PER_K_S * above_c * moment.passed_s
        elif above_c < -_HYSTERESIS_C:
            self._share += _STEP_BACK_PER_S * moment.passed_s
        self._share = min(1.0, max(_LEAST_SHARE, self._share))
        if not moment.looked:
            return
        for number, zone in enumerate(self.table["zones"]):
            if "fixed_c" not in zone:
                layout.rewrite(self.sysroot.path(f"{_ZONES}{number}/temp"), str(round(moment.warmth_c * 1000)))
        state = round((1.0 - self._share) * _COOLING_STATES)
        layout.rewrite(self.sysroot.path(f"{_COOLING}/cur_state"), str(state))

    def caps(self) -> Mapping[str, float]:
        """Return what heat leaves of the clocks."""
        return {"cpu": self._share, "gpu": self._share}
