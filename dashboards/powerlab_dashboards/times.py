"""Times for people: a moment that the page's script shows relative to now, and how long something takes."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup

from powerlab_dashboards.format import moment

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86400.0


def when(at: datetime | None) -> Markup:
    """Return a ``<time>``: in UTC as it stands, "4 min ago" with the viewer's own time in its title where scripts run.

    Empty without a time.
    """
    if at is None:
        return Markup()
    text = moment(at)
    return Markup('<time datetime="{}" title="{}" data-relative>{}</time>').format(_iso(at), text, text)


def span(duration_s: float) -> str:
    """Return about how long something takes: ``less than a minute``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if duration_s < _MINUTE_S:
        return "less than a minute"
    if duration_s < _HOUR_S:
        return f"{round(duration_s / _MINUTE_S)} min"
    if duration_s < _DAY_S:
        return _two(duration_s, _HOUR_S, "h", _MINUTE_S, "min")
    return _two(duration_s, _DAY_S, "d", _HOUR_S, "h")


def _two(duration_s: float, large_s: float, large: str, small_s: float, small: str) -> str:
    """Return a duration in two units, the smaller one only where there is some of it."""
    whole, rest = divmod(round(duration_s / small_s), round(large_s / small_s))
    return f"{whole} {large}" + (f" {rest} {small}" if rest else "")


def _iso(at: datetime) -> str:
    """Return a time with its zone: the database's times are UTC, whether they say so or not."""
    text = at.isoformat(timespec="seconds")
    return text if at.tzinfo is not None else f"{text}+00:00"
