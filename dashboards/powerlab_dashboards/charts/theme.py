"""Colours of the charts, for light and dark pages.

The categorical colours are Okabe and Ito's set ("Color Universal Design", 2008), darkened on light pages and lightened
on dark ones until every colour has a contrast of at least 3:1 against its page; each series has a marker of its own
too. The sequential scale is of one hue with monotone lightness, so it survives every kind of colour blindness and
print in grey; it ends where the page's ink can still be read on it.
"""

from __future__ import annotations

from dataclasses import dataclass

_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """The colours of one page theme, as ``#rrggbb``."""

    name: str
    surface: str
    ink: str
    muted: str
    line: str
    grid: str
    shade: str
    series: tuple[str, ...]
    sequential: tuple[str, ...]
    font: str = _FONT

    def colour(self, index: int) -> str:
        """Return the colour of series ``index``; colours repeat if there are more series than colours."""
        return self.series[index % len(self.series)]

    def colour_scale(self) -> list[list[float | str]]:
        """Return the sequential scale in Plotly's format, from the lowest to the highest value."""
        last = len(self.sequential) - 1
        return [[index / last, colour] for index, colour in enumerate(self.sequential)]


LIGHT = Theme(
    name="light",
    surface="#ffffff",
    ink="#1b1f24",
    muted="#59636e",
    line="#b9c1ca",
    grid="#e4e8ec",
    shade="#0072b2",
    series=("#0072b2", "#d55e00", "#00805d", "#b0558a", "#8a6d00", "#3b4bb5", "#5c636b", "#a3331f"),
    sequential=("#f6f9fc", "#d5e5f2", "#a9cdea", "#6fb0de"),
)

DARK = Theme(
    name="dark",
    surface="#1a1e24",
    ink="#e6e9ed",
    muted="#9aa5b1",
    line="#4a535d",
    grid="#2a3038",
    shade="#56b4e9",
    series=("#56b4e9", "#f08c3a", "#2fc594", "#e39ac4", "#e3cf52", "#98a3f5", "#b3bbc4", "#f08a76"),
    sequential=("#181d24", "#1d364d", "#205177", "#246da0"),
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
    """

    theme: Theme = LIGHT
    narrow: bool = False
