"""The figures of a report, in order. To add one, write its file and add it here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from powerlab.analysis.best import work_of
from powerlab.analysis.summary import PointSummary
from powerlab.reports.blocks import Picture
from powerlab.reports.figures import efficiency_heatmap, energy_bars, latency_threads, throughput_power
from powerlab.reports.figures.base import Drawing

DRAWINGS: tuple[Drawing, ...] = (
    throughput_power.DRAWING,
    efficiency_heatmap.DRAWING,
    latency_threads.DRAWING,
    energy_bars.DRAWING,
)


def pictures_of(summaries: Sequence[PointSummary]) -> Iterator[Picture]:
    """Yield every figure of every work that has what it needs: points of other works stand in pictures of their own."""
    works: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        works.setdefault(work_of(summary.point), []).append(summary)
    for number, (work, members) in enumerate(works.items(), start=1):
        for drawing in DRAWINGS:
            if any(all(one.metric(name) is not None for name in drawing.needs) for one in members):
                yield Picture(
                    name=drawing.name if len(works) == 1 else f"{drawing.name}-{number}",
                    title=drawing.title if len(works) == 1 else f"{drawing.title}: {work}",
                    caption=drawing.caption,
                    alt=drawing.alt(members),
                    draw=partial(drawing.draw, members),
                )
