"""Numbers as people read them: as many digits as the interval supports, the unit left to the heading."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from powerlab.domain.quantity import METRICS, Metric

_DIGITS_WITHOUT_INTERVAL = 3
_MOST_DECIMALS = 6
_LOPSIDED = 0.2
_MINUS = "−"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A metric in characters.

    Attributes:
        value: ``12.34``.
        spread: ``±0.05``, or ``+0.09 −0.05`` for a lopsided interval, or empty where there is no interval.
        interval: ``95 % interval 12.29 to 12.39``, or ``no interval``.
        unit: ``ms``.
        provenance: the word, ``measured``.
    """

    value: str
    spread: str
    interval: str
    unit: str
    provenance: str

    @property
    def sentence(self) -> str:
        """``12.34 ±0.05 ms``, for tooltips and labels."""
        return " ".join(part for part in (self.value, self.spread, self.unit) if part)


def shown(metric: Metric) -> Shown:
    """Return a metric ready to print: the interval keeps two digits, the value as many decimals."""
    kind = METRICS[metric.name]
    if metric.low is None or metric.high is None:
        return Shown(
            value=significant(metric.value),
            spread="",
            interval="no interval",
            unit=kind.unit,
            provenance=metric.provenance.value,
        )
    below, above = metric.value - metric.low, metric.high - metric.value
    decimals = decimals_for(max(below, above), metric.value)
    return Shown(
        value=fixed(metric.value, decimals),
        spread=_spread(below, above, decimals),
        interval=f"95 % interval {fixed(metric.low, decimals)} to {fixed(metric.high, decimals)}",
        unit=kind.unit,
        provenance=metric.provenance.value,
    )


def decimals_for(half_width: float, value: float) -> int:
    """Return how many decimals of ``value`` an interval of that half-width supports, 0 to 6."""
    if not math.isfinite(half_width) or half_width <= 0:
        return _significant_decimals(value, _DIGITS_WITHOUT_INTERVAL + 1)
    return min(max(1 - math.floor(math.log10(half_width)), 0), _MOST_DECIMALS)


def significant(value: float, digits: int = _DIGITS_WITHOUT_INTERVAL) -> str:
    """Return ``value`` with that many significant digits and never in powers of ten."""
    return fixed(value, _significant_decimals(value, digits))


def fixed(value: float, decimals: int) -> str:
    """Return ``value`` with that many decimals and a real minus sign; a rounded zero has no sign."""
    text = f"{value:.{decimals}f}"
    if text.startswith("-"):
        return text[1:] if float(text) == 0 else _MINUS + text[1:]
    return text


def moment(when: datetime | str) -> str:
    """Return a moment as ``2026-11-21 09:30 UTC``; text that is no ISO 8601 moment stays as it is."""
    if isinstance(when, str):
        try:
            when = datetime.fromisoformat(when)
        except ValueError:
            return str(when)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def clock(when: str) -> str:
    """Return the time of day of an ISO 8601 moment, ``09:30:05`` in UTC; text that is no moment stays as it is."""
    try:
        found = datetime.fromisoformat(when)
    except ValueError:
        return when
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).strftime("%H:%M:%S")


def model_label(model: str) -> str:
    """Return a model's short name: a zoo name as it is, an ONNX file without its folders."""
    return PurePath(model).name if "/" in model else model


def count(number: int, noun: str) -> str:
    """Return ``1 run``, ``3 runs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _significant_decimals(value: float, digits: int) -> int:
    if not math.isfinite(value) or value == 0:
        return 0
    rounded = float(f"{abs(value):.{digits - 1}e}")
    return min(max(digits - 1 - math.floor(math.log10(rounded)), 0), 12)


def _spread(below: float, above: float, decimals: int) -> str:
    if abs(above - below) <= _LOPSIDED * max(above, below):
        return f"±{fixed(max(above, below), decimals)}"
    return f"+{fixed(max(above, 0.0), decimals)} {_MINUS}{fixed(max(below, 0.0), decimals)}"
