"""Colours of pictures, for light pages, dark pages, and pages that may be either.

The categorical colours are Okabe and Ito's set ("Color Universal Design", 2008), darkened on light pages and lightened
on dark ones until every colour has a contrast of at least 3:1 against its page; each series has a marker of its own
too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """Colours, as SVG and CSS write them.

    Attributes:
        surface: the page.
        ink: text.
        muted: text that steps back.
        line: axes.
        grid: what helps to read values.
        series: one colour after the other.
    """

    surface: str
    ink: str
    muted: str
    line: str
    grid: str
    series: tuple[str, ...]

    def colour(self, index: int) -> str:
        """Return the colour of series ``index``; colours repeat if there are more series than colours."""
        return self.series[index % len(self.series)]


LIGHT = Palette(
    surface="#ffffff",
    ink="#1b1f24",
    muted="#59636e",
    line="#b9c1ca",
    grid="#e4e8ec",
    series=("#0072b2", "#d55e00", "#00805d", "#b0558a", "#8a6d00", "#3b4bb5", "#5c636b", "#a3331f"),
)

DARK = Palette(
    surface="#1a1e24",
    ink="#e6e9ed",
    muted="#9aa5b1",
    line="#4a535d",
    grid="#2a3038",
    series=("#56b4e9", "#f08c3a", "#2fc594", "#e39ac4", "#e3cf52", "#98a3f5", "#b3bbc4", "#f08a76"),
)

PAGE = Palette(
    **{one.name: f"var(--{one.name})" for one in fields(Palette) if one.name != "series"},
    series=tuple(f"var(--series-{index})" for index in range(len(LIGHT.series))),
)
"""The colours of the page that a picture is part of, whichever they are."""


def css_variables(palette: Palette) -> str:
    """Return the declarations that give :data:`PAGE` these colours."""
    return " ".join(f"{name}: {colour};" for name, colour in _variables(palette))


def _variables(palette: Palette) -> Iterator[tuple[str, str]]:
    for one in fields(Palette):
        if one.name != "series":
            yield f"--{one.name}", getattr(palette, one.name)
    for index, colour in enumerate(palette.series):
        yield f"--series-{index}", colour
