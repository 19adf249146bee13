"""A figure in characters: the value with the decimals that its interval supports."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.analysis.rounding import interval_decimals, lopsided, significant_decimals
from powerlab.domain.quantity import Metric, Provenance

_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureText:
    """A figure in characters: the value, and both sides of its 95 % interval where it has one."""

    value: str
    up: str = ""
    down: str = ""

    @property
    def plain(self) -> str:
        """The figure in one line: ``24.6 ± 0.4``, ``3.3 +4.4 −1.2``, or the value alone."""
        if not self.up:
            return self.value
        return f"{self.value} ± {self.up}" if self.up == self.down else f"{self.value} +{self.up} −{self.down}"


def figure_text(metric: Metric) -> FigureText:
    """Return a figure with as many decimals as its interval supports; a published one as it was printed."""
    if metric.provenance is Provenance.PUBLISHED:
        return FigureText(value=repr(metric.value))
    if metric.low is None or metric.high is None:
        return FigureText(value=number_text(metric.value))
    up, down = metric.high - metric.value, metric.value - metric.low
    places = interval_decimals(max(up, down))
    if places is None:
        return FigureText(value=number_text(metric.value))
    if not lopsided(down, up):
        up = down = max(up, down)
    return FigureText(value=f"{metric.value:.{places}f}", up=f"{up:.{places}f}", down=f"{down:.{places}f}")


def number_text(value: float) -> str:
    """Return a number without an interval, with four significant digits."""
    return f"{value:.{significant_decimals(value, _DIGITS)}f}"


def counted(count: int, what: str) -> str:
    """Return ``1 run`` or ``6 runs``."""
    return f"{count} {what}{'s' * (count != 1)}"
