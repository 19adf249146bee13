"""The curves of a device's last minutes, by the key that ``static/readings.js`` knows them by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from powerlab.protocol.readings import ReadingRecord, Snapshot

Curve = list[tuple[float, float | None]]


def curves_of(readings: Sequence[ReadingRecord], now: datetime) -> Mapping[str, Curve]:
    """Return by key the age in s (0 or less) and the figure of every reading, oldest first; empty for other keys."""
    curves: defaultdict[str, Curve] = defaultdict(list)
    for reading in readings:
        age_s = (reading.at - now).total_seconds()
        for key, value in _figures(reading.seen):
            curves[key].append((age_s, value))
    return curves


def _figures(seen: Snapshot) -> list[tuple[str, float | None]]:
    total = [] if seen.total is None else [("total", seen.total.power_w)]
    rails = [(f"rail:{rail.rail}", rail.power_w) for rail in seen.rails]
    clocks = [(f"clock:{clock.name}", clock.clock_mhz) for clock in seen.clocks]
    zones = [(f"temperature:{one.name}", one.celsius) for one in seen.temperatures]
    return [*total, *rails, *clocks, *zones]
