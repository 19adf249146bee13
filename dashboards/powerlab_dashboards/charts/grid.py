"""Placement of small multiples in Plotly's paper coordinates, from 0 (bottom left) to 1 (top right)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_GAP_X = 0.07


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Panels in reading order.

    Attributes:
        rows: how many rows of panels.
        columns: how many columns.
        row_px: height of one panel.
        gap_px: height between two rows, for the upper row's axis and the lower row's headings.
    """

    rows: int
    columns: int
    row_px: int
    gap_px: int

    @classmethod
    def of(cls, panel_count: int, *, narrow: bool, row_px: int, gap_px: int) -> Grid:
        """Return a grid for this many panels: one column if ``narrow``, 2 by 2 for four, else up to three columns."""
        widest = 1 if narrow else 2 if panel_count == 4 else 3
        columns = max(1, min(panel_count, widest))
        return cls(rows=math.ceil(panel_count / columns), columns=columns, row_px=row_px, gap_px=gap_px)

    def height_px(self, margin: Mapping[str, int]) -> int:
        """Return the whole figure's height with these margins."""
        return self._plot_px() + margin["t"] + margin["b"]

    def domains(self, index: int) -> tuple[list[float], list[float]]:
        """Return the horizontal and vertical extent of panel ``index``."""
        row, column = divmod(index, self.columns)
        width = (1 - _GAP_X * (self.columns - 1)) / self.columns
        left = column * (width + _GAP_X)
        top = 1 - row * (self.row_px + self.gap_px) / self._plot_px()
        bottom = top - self.row_px / self._plot_px()
        return [left, min(left + width, 1.0)], [max(bottom, 0.0), top]

    def _plot_px(self) -> int:
        return self.rows * self.row_px + (self.rows - 1) * self.gap_px
