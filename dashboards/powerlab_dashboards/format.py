"""Format numbers for people: as many digits as the interval supports; units go into headings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from powerlab.analysis.rounding import interval_decimals, lopsided, significant_decimals
from powerlab.domain.layers import LAYER_METRICS
from powerlab.domain.model_name import short
from powerlab.domain.quantity import METRICS, Metric
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import ngettext
from powerlab_dashboards.terms import NOUNS

_DIGITS_WITHOUT_INTERVAL = 3
_MINUS = "−"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A formatted metric.

    Attributes:
        value: ``12.34``.
        spread: ``±0.05``, or ``+0.09 −0.05`` for an asymmetric interval, or empty without an interval.
        interval: ``95 % interval 12.29 to 12.39``, or ``no interval``.
        unit: ``ms``.
        provenance: such as ``measured``, in English: pages translate it where they show it.
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
    """Format a metric: two significant digits for the interval, and as many decimals for the value."""
    kind = METRICS.get(metric.name) or LAYER_METRICS[metric.name]
    if metric.low is None or metric.high is None:
        return Shown(
            value=significant(metric.value),
            spread="",
            interval=_("no interval"),
            unit=kind.unit,
            provenance=metric.provenance.value,
        )
    below, above = metric.value - metric.low, metric.high - metric.value
    decimals = decimals_for(max(below, above), metric.value)
    return Shown(
        value=fixed(metric.value, decimals),
        spread=_spread(below, above, decimals),
        interval=_(
            "95 %% interval %(low)s to %(high)s", low=fixed(metric.low, decimals), high=fixed(metric.high, decimals)
        ),
        unit=kind.unit,
        provenance=metric.provenance.value,
    )


def decimals_for(half_width: float, value: float) -> int:
    """Return the decimals of ``value`` that an interval of this half-width supports; a default without an interval."""
    decimals = interval_decimals(half_width)
    return significant_decimals(value, _DIGITS_WITHOUT_INTERVAL + 1) if decimals is None else decimals


def significant(value: float, digits: int = _DIGITS_WITHOUT_INTERVAL) -> str:
    """Return ``value`` with this many significant digits, never in scientific notation."""
    return fixed(value, significant_decimals(value, digits))


def fixed(value: float, decimals: int) -> str:
    """Return ``value`` with this many decimals and a true minus sign; a rounded zero has no sign."""
    text = f"{value:.{decimals}f}"
    if text.startswith("-"):
        return text[1:] if float(text) == 0 else _MINUS + text[1:]
    return text


def uniform_provenance(metrics: Iterable[Metric | None]) -> str:
    """Return the provenance that all figures share, to be said once, above their column; empty where they differ."""
    found = {metric.provenance.value for metric in metrics if metric is not None}
    return found.pop() if len(found) == 1 else ""


def moment(when: datetime | str) -> str:
    """Return a time as ``2026-11-21 09:30 UTC``; text that is not an ISO 8601 time is returned unchanged."""
    return _in_utc(when, "%Y-%m-%d %H:%M UTC")


def clock(when: str) -> str:
    """Return the UTC time of day, such as ``09:30:05``; text that is not an ISO 8601 time is returned unchanged."""
    return _in_utc(when, "%H:%M:%S")


def model_label(model: str) -> str:
    """Return a model's short name: a zoo name unchanged, a file without its folders, the first digits of a digest."""
    return PurePath(model).name if "/" in model else short(model)


def count(number: int, noun: str) -> str:
    """Return ``1 run``, ``3 runs``, in the visitor's language; ``noun`` is a key of :data:`.terms.NOUNS`."""
    return ngettext(*NOUNS[noun], number, count=number)


def _spread(below: float, above: float, decimals: int) -> str:
    if lopsided(below, above):
        return f"+{fixed(above, decimals)} {_MINUS}{fixed(below, decimals)}"
    return f"±{fixed(max(above, below), decimals)}"


def _in_utc(when: datetime | str, pattern: str) -> str:
    try:
        found = datetime.fromisoformat(when) if isinstance(when, str) else when
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # also a moment that lies before the year 1 or after 9999 in UTC
        return str(when)
    return found.strftime(pattern)
