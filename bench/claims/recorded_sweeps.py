"""Sweeps of one point that were measured one after another with nothing changed: as little of them as a gate reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload

FOLDER = Path(__file__).parent / "sweeps"
_POINT = Point(workload=Workload(model="squeezenet", batch_size=1), threads=1, mode="current")


class RecordedSweeps(msgspec.Struct):
    """A series.

    Attributes:
        name: the machine or the simulated board.
        processor: what ran them; of a simulated board, the host's.
        date: of the first sweep, UTC.
        provenance: by metric, what the figures are.
        sweeps: by sweep and valid repeat, the figures by metric, in their units.
    """

    name: str
    processor: str
    date: str
    provenance: dict[str, str]
    sweeps: list[list[dict[str, float]]]


def packed(name: str, processor: str, sweeps: Sequence[Sequence[Run]], metrics: Sequence[str]) -> RecordedSweeps:
    """Return a series of the valid figures of some sweeps; those without three of each are left out."""
    from powerlab.analysis.summary import MIN_VALID, sound_runs

    found, provenance = [], {}
    for runs in sweeps:
        sound = {metric: sound_runs(runs, metric) for metric in metrics}
        kept = [one for one in runs if any(one in sound[metric] for metric in metrics)]
        figures = [
            {metric: one.metric(metric).value for metric in metrics if one in sound[metric]}  # type: ignore[union-attr]
            for one in kept
        ]
        if len(figures) >= MIN_VALID:
            found.append(figures)
            provenance |= {metric: str(one.metric(metric).provenance) for metric in metrics for one in sound[metric]}  # type: ignore[union-attr]
    date = min((run.started_at for runs in sweeps for run in runs), default=f"{datetime.now(UTC):%Y-%m-%d}")[:10]
    return RecordedSweeps(name=name, processor=processor, date=date, provenance=provenance, sweeps=found)


def runs_of(series: RecordedSweeps) -> list[list[Run]]:
    """Return the sweeps as valid runs."""
    return [
        [
            Run(
                id=f"{number}-{repeat}",
                sweep_id=str(number),
                point=_POINT,
                repeat=repeat,
                started_at=f"{series.date}T00:00:00+00:00",
                window_ns=(1, 2),
                inference_count=1,
                verdict=Verdict.VALID,
                findings=(),
                metrics=tuple(
                    Metric(name=name, value=value, provenance=Provenance(series.provenance[name]))
                    for name, value in figures.items()
                ),
                total=None,
                budget=(),
            )
            for repeat, figures in enumerate(sweep)
        ]
        for number, sweep in enumerate(series.sweeps)
    ]
