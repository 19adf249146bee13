"""Colours and markers of the series by power mode and batch size, and their legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.theme import SYMBOLS, Theme


class Look:
    """One series per power mode and batch size; colour encodes the mode, or the batch size if there is one mode only.

    Attributes:
        theme: the page's colours.
    """

    def __init__(self, theme: Theme, summaries: Sequence[PointSummary]) -> None:
        self.theme = theme
        self._modes = list(dict.fromkeys(summary.point.mode for summary in summaries))
        self._batches = sorted({summary.point.workload.batch_size for summary in summaries})

    def series(self) -> Iterator[tuple[str, int]]:
        """Yield every power mode with every batch size."""
        for mode in self._modes:
            for batch in self._batches:
                yield mode, batch

    def colour(self, mode: str, batch: int) -> str:
        """Return the series' colour."""
        by_mode = len(self._modes) > 1
        return self.theme.colour(self._modes.index(mode) if by_mode else self._batches.index(batch))

    def symbol(self, mode: str, batch: int) -> str:
        """Return the series' marker."""
        by_batch = len(self._batches) > 1
        return SYMBOLS[(self._batches.index(batch) if by_batch else self._modes.index(mode)) % len(SYMBOLS)]

    def group(self, mode: str, batch: int) -> str:
        """Return the legend group that toggles the series."""
        return plain(mode) if len(self._modes) > 1 or len(self._batches) == 1 else f"batch {batch}"

    def keys(self) -> list[dict[str, Any]]:
        """Return empty traces that only add legend entries."""
        modes, batches = self._modes, self._batches
        if len(modes) > 1 and len(batches) > 1:
            return [
                *(_key(plain(mode), self.colour(mode, batches[0]), SYMBOLS[0]) for mode in modes),
                *(_key(f"batch {batch}", self.theme.muted, self.symbol(modes[0], batch)) for batch in batches),
            ]
        return [
            _key(self.group(mode, batch), self.colour(mode, batch), self.symbol(mode, batch))
            for mode, batch in self.series()
        ]


def error_bars(metrics: Sequence[Metric], colour: str) -> dict[str, Any]:
    """Return 95 % intervals as error bars; a figure without an interval has none."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if metric.high is None else metric.high - metric.value for metric in metrics],
        "arrayminus": [0.0 if metric.low is None else metric.value - metric.low for metric in metrics],
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _key(name: str, colour: str, symbol: str) -> dict[str, Any]:
    marker = {"size": 9, "color": colour, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "x": [None], "y": [None], "name": name, "legendgroup": name,
            "marker": marker}  # fmt: skip
