"""What is asked of stored runs: a goal, bounds, and how many images arrive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from powerlab.analysis.operating_point.bounds import Bound, parse_bounds
from powerlab.analysis.operating_point.quantities import IMAGES_PER_SECOND, WATT_HOURS, parse_quantity
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError

GOALS: dict[str, str] = {
    "energy": "energy_per_image_j",
    "throughput": "throughput_img_per_s",
    "latency": "latency_p99_ms",
    "battery": "energy_per_image_j",
}
"""What a point may be best at, and the metric that says so; at a given arrival rate, energy includes idling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    Attributes:
        goal: a key of :data:`GOALS`; None takes the least energy, or the lowest latency where there is no power.
        bounds: what a point must keep.
        rate_img_per_s: images that arrive in a second, one by one; None where the device is always busy.
        battery_wh: what the battery holds; None where there is none.
    """

    goal: str | None = None
    bounds: tuple[Bound, ...] = ()
    rate_img_per_s: float | None = None
    battery_wh: float | None = None

    @property
    def needed_rate(self) -> Bound | None:
        """The throughput that a point needs to keep up with what arrives."""
        return None if self.rate_img_per_s is None else Bound(name="throughput", limit=self.rate_img_per_s)


def parse_question(
    goal: str | None, bounds: Mapping[str, str | None], rate: str | None, battery: str | None
) -> Question:
    """Return what is asked, from words.

    Raises:
        PowerlabError: a word makes no sense, or battery life is asked for without an arrival rate.
    """
    if goal is not None and goal not in GOALS:
        raise PowerlabError(f"there is no goal {goal!r}{meant(goal, list(GOALS))}; choose from: {', '.join(GOALS)}.")
    asked = Question(
        goal=goal,
        bounds=parse_bounds(bounds),
        rate_img_per_s=None if rate is None else parse_quantity("rate", rate, IMAGES_PER_SECOND, "25/s"),
        battery_wh=None if battery is None else parse_quantity("battery", battery, WATT_HOURS, "50Wh"),
    )
    if goal == "battery" and asked.rate_img_per_s is None:
        raise PowerlabError("battery life depends on how many images arrive; give their rate too, such as 25/s.")
    return asked
