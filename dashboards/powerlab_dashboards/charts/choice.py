"""What a reader chose to see of a sweep's charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COSTS = ("power_w", "energy_per_image_j", "energy_above_idle_per_image_j")
"""What a Pareto front may have on its horizontal axis."""
GAINS = ("throughput_img_per_s", "latency_p50_ms", "latency_p99_ms")
"""And on its vertical one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A reader's choice; what cannot be shown falls back to what can.

    Attributes:
        metric: what the heatmap shows, a key of :data:`powerlab.domain.quantity.METRICS`; empty takes the first of its
            defaults that the sweep has.
        x: title of the heatmap's horizontal dimension; empty takes one that varied.
        y: title of its vertical one.
        cost: the front's horizontal axis, one of :data:`COSTS`.
        gain: its vertical one, one of :data:`GAINS`.
        barred: by the point's id, why the reader's bounds exclude it, in words.
        points_at: the address to which a point's id is appended to see its runs; empty if charts open nothing.
    """

    metric: str = ""
    x: str = ""
    y: str = ""
    cost: str = COSTS[0]
    gain: str = GAINS[0]
    barred: Mapping[str, str] = field(default_factory=dict)
    points_at: str = ""

    def address(self, point_id: str) -> str:
        """Return where the runs of a point are listed; empty if charts open nothing."""
        return f"{self.points_at}{point_id}" if self.points_at else ""
