"""A sweep while it is measured: a table of its points so far with a bar each, best first, and the progress.

On standard error, and only on a terminal. It is laid out between runs and drawn once a second, so that it costs a timed
run less processor time than a progress bar that moves ten times a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.segment import SegmentLines
from rich.table import Table
from rich.text import Text

from powerlab.analysis.dimensions import in_words, varying
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.cli.output.progress import measuring
from powerlab.cli.output.sweep_table import format_figure
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

_PLOTTED = (("img/s/W", "efficiency_img_per_s_per_w"), ("img/s", "throughput_img_per_s"))
"""What bars show: the first of these that a point has."""
_COLUMNS = (("p50 ms", "latency_p50_ms"), ("img/s", "throughput_img_per_s"), ("W", "power_w"), _PLOTTED[0])
_BAR = "█"
_PARTS = " ▏▎▍▌▋▊▉"
_WIDE = 100
_NARROW_BAR, _WIDE_BAR = 10, 24
_AROUND = 6
"""Lines of a terminal that are no points."""


class LiveSweep:
    """Shows a sweep as long as the context is open; what is printed meanwhile stands above it."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True)
        self.progress = measuring(self.console)
        self._runs: dict[Point, list[Run]] = {}
        self._summaries: dict[Point, PointSummary] = {}
        self._drawn: RenderableType = Text()
        self._live = Live(
            get_renderable=self._whole,
            console=self.console,
            refresh_per_second=1,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def print(self, words: str | Text) -> None:
        """Print a sentence that stays."""
        self.console.print(words)

    def add(self, runs: Iterable[Run]) -> None:
        """Show finished runs."""
        found = list(runs)
        for run in found:
            self._runs.setdefault(run.point, []).append(run)
        if not found or not self.console.is_terminal:
            return
        for point in {run.point for run in found}:
            (self._summaries[point],) = summarise(self._runs[point])
        whole = so_far(tuple(self._summaries.values()), self.console.width, self.console.height - _AROUND)
        self._drawn = SegmentLines(self.console.render_lines(whole, pad=False), new_lines=True)

    def _whole(self) -> RenderableType:
        return Group(self._drawn, self.progress)


def so_far(summaries: Sequence[PointSummary], width: int, rows: int) -> RenderableType:
    """Return a sweep's points so far as a table with bars, the best first, for so many columns and points.

    Bars show img/s/W where a point has it, else img/s; never both, so that they can be compared.
    """
    heading, plotted = next(
        (one for one in _PLOTTED if any(summary.metric(one[1]) is not None for summary in summaries)), _PLOTTED[-1]
    )
    found = sorted(summaries, key=lambda summary: -_value(summary, plotted))
    named = in_words if len(found) == 1 else varying(summary.point for summary in found)
    wide = width >= _WIDE
    columns = [one for one in _COLUMNS if any(summary.metric(one[1]) is not None for summary in found)]
    columns = columns if wide else [one for one in columns if not one[1].startswith("latency")]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("point so far", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("valid", justify="right", no_wrap=True)
    for title, name in columns:
        table.add_column(_title(title, name, found), justify="right", no_wrap=True)
    bar_width = _WIDE_BAR if wide else _NARROW_BAR
    table.add_column(f"{heading} ", width=bar_width, no_wrap=True)
    most = max((_value(summary, plotted) for summary in found), default=0.0)
    for summary in found[: max(1, rows)]:
        valid = f"{summary.valid_count}/{summary.run_count}"
        figures = [Text(format_figure(summary.metric(name))) for _, name in columns]
        drawn = Text(bar(_value(summary, plotted), most, bar_width), style="green")
        table.add_row(Text(named(summary.point)), valid, *figures, drawn)
    hidden = len(found) - max(1, rows)
    return Group(table, Text(f"… and {hidden} more points", style="dim")) if hidden > 0 else table


def bar(value: float, most: float, width: int) -> str:
    """Return a bar of up to ``width`` columns, to an eighth of one; empty where there is no value."""
    eighths = round(8 * width * value / most) if most > 0 and value > 0 else 0
    return (_BAR * (eighths // 8) + _PARTS[eighths % 8]).strip()


def _value(summary: PointSummary, name: str) -> float:
    metric = summary.metric(name)
    return -1.0 if metric is None else metric.value


def _title(title: str, name: str, summaries: Sequence[PointSummary]) -> str:
    """Return a heading with the provenance of its figures."""
    origins = sorted({metric.provenance for one in summaries if (metric := one.metric(name)) is not None})
    return f"{title}\n{', '.join(origins)}"
