"""Colours of the charts, for light and dark pages: those of pictures in reports, and what only charts need.

The sequential scale is of one hue with monotone lightness, so it survives every kind of colour blindness and print in
grey; it ends where the page's ink can still be read on it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from powerlab.reports.figures import palette
from powerlab_dashboards.charts.choice import Choice

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme(palette.Palette):
    """The colours of one page theme, as ``#rrggbb``."""

    name: str
    shade: str
    sequential: tuple[str, ...]
    font: str = _FONT

    def colour_scale(self) -> list[list[float | str]]:
        """Return the sequential scale in Plotly's format, from the lowest to the highest value."""
        last = len(self.sequential) - 1
        return [[index / last, colour] for index, colour in enumerate(self.sequential)]


LIGHT = Theme(
    name="light", shade="#0072b2", sequential=("#f6f9fc", "#d5e5f2", "#a9cdea", "#6fb0de"), **asdict(palette.LIGHT)
)

DARK = Theme(
    name="dark", shade="#56b4e9", sequential=("#181d24", "#1d364d", "#205177", "#246da0"), **asdict(palette.DARK)
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon")
"""Markers by series; in Plotly the suffix ``-open`` makes them hollow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How a figure will be seen.

    Attributes:
        theme: the page's colours.
        narrow: True on a screen too narrow for charts side by side; small multiples are then stacked.
        choice: what the reader chose to see, which charts of a sweep follow.
    """

    theme: Theme = LIGHT
    narrow: bool = False
    choice: Choice = field(default_factory=Choice)
