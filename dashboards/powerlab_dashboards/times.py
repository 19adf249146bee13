"""Times for people: a moment that the page's script shows relative to now, and how long something takes."""

from __future__ import annotations

from datetime import datetime

from markupsafe import Markup

from powerlab_dashboards.format import moment
from powerlab_dashboards.language import gettext as _

_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86400.0


def when(at: datetime | str | None) -> Markup:
    """Return a ``<time>``: in UTC as it stands, "4 min ago" with the viewer's own time in its title where scripts run.

    Empty without a time.
    """
    if isinstance(at, str):
        at = datetime.fromisoformat(at)
    if at is None:
        return Markup()
    text = moment(at)
    return Markup('<time datetime="{}" title="{}" data-relative>{}</time>').format(_iso(at), text, text)


def span(duration_s: float) -> str:
    """Return about how long something takes: ``less than a minute``, ``12 min``, ``3 h 20 min``, ``2 d 4 h``."""
    if duration_s < _MINUTE_S:
        return _("less than a minute")
    if duration_s < _HOUR_S:
        return _("%(minutes)s min", minutes=round(duration_s / _MINUTE_S))
    if duration_s < _DAY_S:
        hours, minutes = divmod(round(duration_s / _MINUTE_S), 60)
        return _("%(hours)s h %(minutes)s min", hours=hours, minutes=minutes) if minutes else _hours(hours)
    days, hours = divmod(round(duration_s / _HOUR_S), 24)
    return _("%(days)s d %(hours)s h", days=days, hours=hours) if hours else _("%(days)s d", days=days)


def _hours(hours: int) -> str:
    return _("%(hours)s h", hours=hours)


def _iso(at: datetime) -> str:
    """Return a time with its zone: the database's times are UTC, whether they say so or not."""
    text = at.isoformat(timespec="seconds")
    return text if at.tzinfo is not None else f"{text}+00:00"
