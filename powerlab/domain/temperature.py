"""Temperature limits of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

START_MARGIN_C = 10.0
"""How far below the highest temperature a run begins where nobody says: a run that began just below it would end at
once, and the next one too."""
LOWEST_C, HIGHEST_C = -40.0, 150.0
"""What a limit may be: silicon for cars works down to the one, and none up to the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemperatureLimits:
    """What every thermal zone of what computes is held to; None where there is no such limit.

    Attributes:
        max_c: a run is ended when a zone is above it, in °C.
        start_below_c: a run begins when every zone is below it, in °C; None with a ``max_c`` takes 10 °C below that.
    """

    max_c: float | None = None
    start_below_c: float | None = None

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return self.max_c is not None or self.start_below_c is not None

    @property
    def begins_below_c(self) -> float | None:
        """What every zone must be below for a run to begin, in °C: always less than ``max_c``."""
        if self.max_c is None:
            return self.start_below_c
        if self.start_below_c is not None and self.start_below_c < self.max_c:
            return self.start_below_c
        return self.max_c - START_MARGIN_C

    def stricter(self, other: TemperatureLimits) -> TemperatureLimits:
        """Return the lower of both limits, each by itself."""
        return TemperatureLimits(
            max_c=_lower(self.max_c, other.max_c), start_below_c=_lower(self.start_below_c, other.start_below_c)
        )

    def complaints(self) -> Iterator[str]:
        """Yield what is wrong with limits that somebody gave together, in sentences that say how to fix it."""
        for title, celsius in (("highest temperature", self.max_c), ("temperature to begin below", self.start_below_c)):
            if celsius is not None and not (math.isfinite(celsius) and LOWEST_C <= celsius <= HIGHEST_C):
                yield f"the {title} is {celsius:g} °C; give one from {LOWEST_C:g} to {HIGHEST_C:g} °C, or none."
        if self.max_c is not None and self.start_below_c is not None and self.start_below_c >= self.max_c:
            yield (
                f"a run would begin below {self.start_below_c:g} °C and be ended above {self.max_c:g} °C; let it "
                "begin below less than that."
            )

    def __str__(self) -> str:
        """Return ``a run begins below 80 °C and is ended above 90 °C``, or as much of that as there is."""
        begins = None if self.begins_below_c is None else f"begins below {self.begins_below_c:g} °C"
        ends = None if self.max_c is None else f"is ended above {self.max_c:g} °C"
        return f"a run {' and '.join(filter(None, (begins, ends)))}" if self else "no limit"


NO_LIMITS = TemperatureLimits()


@dataclass(frozen=True, slots=True)
class Reading:
    """The temperature of one zone, in °C."""

    zone: str
    celsius: float

    def __str__(self) -> str:
        """Return ``CPU-therm 91.2 °C``."""
        return f"{self.zone} {self.celsius:.1f} °C"


def hottest(celsius: Mapping[str, float]) -> Reading | None:
    """Return the hottest of some zones; None where none gives a temperature, which is not 0 °C."""
    if not celsius:
        return None
    zone = max(celsius, key=lambda name: celsius[name])
    return Reading(zone, celsius[zone])


def _lower(one: float | None, other: float | None) -> float | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
