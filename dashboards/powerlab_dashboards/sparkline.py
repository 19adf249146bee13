"""Small curves as SVG, without axes: how a figure went in the last minutes. ``static/readings.js`` draws the same."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

WIDTH, HEIGHT = 120, 24
_PAD = 2.0
_GAP_S = 25.0
"""Without a reading for longer, the curve is interrupted: nothing is known of the time between."""


def sparkline(values: Sequence[tuple[float, float | None]], span_s: float = 300.0) -> Markup:
    """Return a curve over the last ``span_s`` seconds, from its least to its highest value.

    Args:
        values: seconds since now (0 or less) and the figure, oldest first; None where it was missing.
        span_s: how far back the curve goes.
    """
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" preserveAspectRatio="none" aria-hidden="true"><path d="{}"/></svg>'
    ).format(WIDTH, HEIGHT, path(values, span_s))


def path(values: Sequence[tuple[float, float | None]], span_s: float) -> str:
    """Return the curve as an SVG path; empty without a value. A constant is a line in the middle."""
    known = [(age_s, value) for age_s, value in values if value is not None and age_s >= -span_s]
    if not known:
        return ""
    least, highest = min(value for _, value in known), max(value for _, value in known)
    room = highest - least
    parts, before_s = [], None
    for age_s, value in known:
        x = WIDTH * (1 + age_s / span_s)
        y = HEIGHT / 2 if room <= 0 else HEIGHT - _PAD - (HEIGHT - 2 * _PAD) * (value - least) / room
        joined = before_s is not None and age_s - before_s <= _GAP_S
        # A lone reading is a dot: a line of no length with round ends.
        parts.append(f"{'L' if joined else 'M'}{x:.1f} {y:.1f}" + ("" if joined else "h0"))
        before_s = age_s
    return "".join(parts)
