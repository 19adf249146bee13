"""Decide at each temperature reading whether a run may continue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from powerlab.domain.temperature import Reading, TemperatureLimits, hottest

TOO_HOT = "too-hot"
NO_TEMPERATURE = "no-temperature"
BLIND_S = 5.0
"""How long there may be no temperature at all. Some sensors are busy for a moment; for longer nobody watches."""


@dataclass(slots=True)
class HeatJudge:
    """What one run's looks add up to.

    Attributes:
        limits: what the device is held to.
        ended: the rule that ends the run: too hot, or no temperature; None as long as it may go on.
        peak: the hottest that any zone was; None before there was a temperature.
    """

    limits: TemperatureLimits
    ended: str | None = None
    peak: Reading | None = None
    _looks: int = 0
    _seen: Counter[str] = field(default_factory=Counter)
    _last_seen_s: float | None = None

    def look(self, celsius: Mapping[str, float], now_s: float) -> bool:
        """Take in what the zones say, and return whether the run is to end.

        Args:
            celsius: temperatures in °C by zone; one that cannot be read is not in it.
            now_s: time of the look, which never goes back.
        """
        self._looks += 1
        self._seen.update(celsius.keys())
        found = hottest(celsius)
        if found is None:
            if self._last_seen_s is None:
                self._last_seen_s = now_s
            if now_s - self._last_seen_s >= BLIND_S:
                self.ended = self.ended or NO_TEMPERATURE
            return self.ended is not None
        self._last_seen_s = now_s
        if self.peak is None or found.celsius > self.peak.celsius:
            self.peak = found
        if self.limits.max_c is not None and found.celsius > self.limits.max_c:
            self.ended = self.ended or TOO_HOT
        return self.ended is not None

    def why(self) -> str:
        """Return in a sentence why the run was ended; empty where it was not."""
        if self.ended == NO_TEMPERATURE:
            return f"no temperature could be read for {BLIND_S:g} s, so the guard could not watch; the run was ended."
        if self.ended == TOO_HOT and self.peak is not None:
            return (
                f"{self.peak.zone} reached {self.peak.celsius:.1f} °C, and {self.limits.max_c:g} °C is the most it may "
                "have; the run was ended."
            )
        return ""

    def words(self) -> str:
        """Return what was watched, the peak, and which zones could not be read all the time."""
        if self.peak is None:
            return "there was no temperature"
        silent = [
            f"{zone} gave none in {self._looks - count} of {self._looks} looks"
            for zone, count in self._seen.items()
            if count < self._looks
        ]
        watched = f"watched {', '.join(self._seen)}: {self.peak.celsius:.1f} °C at most ({self.peak.zone})"
        return "; ".join((f"{watched}, and {self.limits}", *silent))
