"""What one figure of a report is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from powerlab.analysis.summary import PointSummary
from powerlab.reports.figures.palette import Palette


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A figure, drawn of the points of one work.

    Attributes:
        name: of its file, without ending.
        title: what it shows.
        caption: how to read it.
        needs: the metrics that a point needs to be in it.
        draw: returns the SVG; at least one of the points has all that it needs.
        alt: returns in a sentence what it shows.
    """

    name: str
    title: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[[Sequence[PointSummary], Palette], str]
    alt: Callable[[Sequence[PointSummary]], str]
