"""What the points of a sweep say of each other, as frames: the best ones, and their ratios to the rest."""

from __future__ import annotations

from powerlab.analysis.best import Best, best_points
from powerlab.analysis.dimensions import in_words
from powerlab.analysis.matches import Match, best_against_rest
from powerlab.analysis.searched import in_contest
from powerlab.analysis.wording import verdict_words
from powerlab.domain.metric_names import metric_name
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point
from powerlab.frames.figure_columns import metric_cells
from powerlab.frames.frame import Frame, frame_of
from powerlab.frames.opening import Source, chosen_sweeps, opened
from powerlab.protocol.export import Cell, Column
from powerlab.sources.source import RunChoice

_FIGURE = (
    Column("value", "double", "its figure, in the unit of the column unit", nullable=True),
    Column("low", "double", "lower end of its 95 % interval", nullable=True),
    Column("high", "double", "upper end", nullable=True),
    Column("provenance", "string", "measured, estimated, simulated", nullable=True),
)
_AGAINST = (
    Column("against_point_id", "string", "the point that it is compared with", nullable=True),
    Column("against", "string", "that point in words", nullable=True),
)
_RATIO = (
    Column("ratio", "double", "the point's figure over that of the other; null where there is none", nullable=True),
    Column("ratio_low", "double", "lower end of its 95 % interval", nullable=True),
    Column("ratio_high", "double", "upper end", nullable=True),
)
_POINT = (
    Column("unit", "string", "the metric's unit"),
    Column("point_id", "string", "the point's identifier"),
    Column("point", "string", "the point in words"),
    *_FIGURE,
)
BEST_FRAME = (
    Column("sweep_id", "string", "the sweep's identifier"),
    Column("device", "string", "the device's name"),
    Column("goal", "string", "latency, throughput, efficiency"),
    Column("metric", "string", "the figure that says so"),
    *_POINT,
    *_AGAINST,
    *_RATIO,
    Column("decision", "string", "winner, tied, not enough data"),
    Column("statement", "string", "the same in a sentence"),
)
COMPARISON_FRAME = (
    Column("sweep_id", "string", "the sweep's identifier"),
    Column("metric", "string", "what is compared"),
    *_POINT,
    *_AGAINST,
    *(Column(f"against_{one.name}", one.kind, one.words, nullable=True) for one in _FIGURE),
    *_RATIO,
    Column("claimed", "bool", "whether a difference may be claimed, all comparisons of the metric considered"),
    Column("statement", "string", "the same in a sentence"),
)


def best(source: Source = None, sweep_id: str | None = None) -> Frame:
    """Return the best point of each sweep for each goal, and whether it is a winner, tied, or not enough is known.

    Models and provenances do not mix, so each of them has a best point of its own.

    Args:
        source: where to read.
        sweep_id: which sweep, whose beginning suffices; None for all, the newest first.

    Raises:
        PowerlabError: the source cannot be read, or has no such sweep.
    """
    with opened(source) as stored:
        rows = [
            (sweep.id, sweep.device_name, *_best_cells(found))
            for sweep in chosen_sweeps(stored, sweep_id)
            for found in best_points(
                in_contest(stored.summaries(sweep.id), sweep.plan), list(stored.runs(RunChoice(sweep_id=sweep.id)))
            )
        ]
        return frame_of(BEST_FRAME, rows)


def comparisons(source: Source = None, sweep_id: str | None = None, *, metric: str) -> Frame:
    """Return the ratio of each sweep's best point to each of its others.

    Errors of a sensor that both points share cancel in a ratio, and repeats are paired; so two points may differ
    although their own intervals overlap (docs/method.md).

    Args:
        source: where to read.
        sweep_id: which sweep, whose beginning suffices; None for all, the newest first.
        metric: the figure, by its name or what people call it, such as ``img/s``.

    Raises:
        PowerlabError: the source cannot be read, has no such sweep, or there is no such metric.
    """
    name = metric_name(metric)
    with opened(source) as stored:
        rows = [
            (sweep.id, *_match_cells(match))
            for sweep in chosen_sweeps(stored, sweep_id)
            for match in best_against_rest(list(stored.runs(RunChoice(sweep_id=sweep.id))), name)
        ]
        return frame_of(COMPARISON_FRAME, rows)


def _best_cells(found: Best) -> tuple[Cell, ...]:
    unit, ratio = METRICS[found.metric.name].unit, found.ratio
    return (
        *(found.goal, found.metric.name, unit, *_point_cells(found.summary.point), *metric_cells(found.metric)),
        *((None, None) if found.runner_up is None else _point_cells(found.runner_up.point)),
        *((None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)),
        *(found.decision.value, found.statement),
    )


def _match_cells(match: Match) -> tuple[Cell, ...]:
    one, other, ratio = match.one, match.other, match.ratio
    return (
        *(match.metric, METRICS[match.metric].unit, *_point_cells(one.point), *metric_cells(one.metric)),
        *(*_point_cells(other.point), *metric_cells(other.metric)),
        *((None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)),
        match.claimed,
        match.reason if ratio is None else verdict_words(ratio, claimed=match.claimed),
    )


def _point_cells(point: Point) -> tuple[Cell, Cell]:
    return point.id, in_words(point)
