"""A small writer of SVG."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from powerlab.reports.figures.palette import Palette

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif'
FONT_PX = 13.0
_WIDE, _NARROW = 0.72, 0.6
"""Widths of capitals and of other characters in such fonts, as a share of the font's size."""


class Canvas:
    """A picture that grows; coordinates in px, from the top left corner.

    Attributes:
        width: in px.
        height: in px.
        palette: its colours.
    """

    def __init__(self, width: float, height: float, palette: Palette) -> None:
        self.width, self.height, self.palette = width, height, palette
        self._parts: list[str] = []

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1.0, dash: str = ""
    ) -> None:
        """Draw a line."""
        self._add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=colour, stroke_width=width, stroke_dasharray=dash)

    def polyline(
        self, points: Iterable[tuple[float, float]], colour: str, *, width: float = 1.5, dash: str = ""
    ) -> None:
        """Draw lines from point to point."""
        path = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
        self._add("polyline", points=path, fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dash)

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        opacity: float = 1.0,
        edge: str = "none",
        edge_width: float = 1.5,
    ) -> None:
        """Draw a rectangle; the edge is not transparent."""
        self._add(
            "rect", x=x, y=y, width=width, height=height, fill=fill, fill_opacity=opacity, stroke=edge,
            stroke_width=edge_width if edge != "none" else "", rx=2,
        )  # fmt: skip

    def marker(self, shape: int, x: float, y: float, colour: str, *, hollow: bool = False, size: float = 4.6) -> None:
        """Draw the marker of series ``shape``; a hollow one shows the page's colour inside."""
        look: dict[str, float | str] = {
            "fill": self.palette.surface if hollow else colour,
            "stroke": colour,
            "stroke_width": 1.8,
        }
        corners = _SHAPES[shape % len(_SHAPES)]
        if not corners:
            self._add("circle", cx=x, cy=y, r=size, **look)
            return
        path = " ".join(f"{_number(x + size * dx)},{_number(y + size * dy)}" for dx, dy in corners)
        self._add("polygon", points=path, **look)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        colour: str = "",
        anchor: str = "start",
        size: float = FONT_PX,
        bold: bool = False,
        turned: bool = False,
    ) -> None:
        """Write words with their baseline at y."""
        attributes = _attributes(
            x=x, y=y, fill=colour or self.palette.ink, text_anchor="" if anchor == "start" else anchor,
            font_size="" if size == FONT_PX else size, font_weight=600 if bold else "",
            transform=f"rotate(-90 {_number(x)} {_number(y)})" if turned else "",
        )  # fmt: skip
        self._parts.append(f"<text {attributes}>{escape(words)}</text>")

    def _add(self, tag: str, **attributes: float | str) -> None:
        self._parts.append(f"<{tag} {_attributes(**attributes)}/>")

    def document(self, alt: str) -> str:
        """Return the picture as an SVG document, which also stands inside HTML."""
        size = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        natural = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        start = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {natural} {size} role="img" aria-label="{escape(alt)}" '
            f"font-family='{FONT}' font-size=\"{_number(FONT_PX)}\">"
        )
        return "\n".join([start, f"<title>{escape(alt)}</title>", *self._parts, "</svg>"])


_SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),
    ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    ((0, 1.15), (1.1, -0.85), (-1.1, -0.85)),
)
"""Corners of the markers in units of their size; none for the circle."""


def text_width(words: str, size: float = FONT_PX) -> float:
    """Return about how wide words are, in px."""
    return size * sum(_WIDE if character.isupper() or character in "_mw" else _NARROW for character in words)


def _attributes(**attributes: float | str) -> str:
    said = {name.replace("_", "-"): value for name, value in attributes.items() if value != ""}
    return " ".join(
        f'{name}="{_number(value) if isinstance(value, float | int) else escape(value)}"'
        for name, value in said.items()
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
