"""A study's table: published rows beside our own, never combined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from powerlab.analysis.dimensions import shown
from powerlab.analysis.matches import Match, along
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.studies.study import Case, Published, Study

NOT_STATED = "not stated"
NOTHING = "–"
"""What stands where there is nothing to say."""


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A sweep that repeats a part of a study.

    Attributes:
        sweep_id: its identifier.
        device: the device's name.
        runs: its runs.
        board: which board the device is; empty where nobody asks.
    """

    sweep_id: str
    device: str
    runs: tuple[Run, ...]
    board: str = ""

    @cached_property
    def summaries(self) -> tuple[PointSummary, ...]:
        """The points of its runs, put together once for all cases and metrics."""
        return summarise(self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the table.

    Attributes:
        case: what all rows of its part ran.
        system: the device.
        software: the engine.
        conditions: threads, power mode, batch and whatever else is worth saying.
        covers: what the watts cover.
        provenance: where its figures come from, in words.
        figures: one for each of the study's metrics; None where there is none.
        sweep_id: the sweep behind it; empty for a published row.
        board: the device's board; empty for a published row.
    """

    case: str
    system: str
    software: str
    conditions: str
    covers: str
    provenance: str
    figures: tuple[Metric | None, ...]
    sweep_id: str = ""
    board: str = ""


def rows(study: Study, repeated: Sequence[Repeated], models: Mapping[str, str] | None = None) -> tuple[Row, ...]:
    """Return the table, case by case: the published rows first, then ours.

    Args:
        study: the study.
        repeated: what was measured.
        models: files that stand for networks.
    """
    found = []
    for case in study.cases:
        found += [_published(study, case, row) for row in case.published]
        for sweep in repeated:
            points = [summary for summary in sweep.summaries if case.holds(summary.point, models)]
            found += [_ours(study, case, sweep, summary) for summary in points]
    return tuple(found)


def compared(study: Study, repeated: Sequence[Repeated]) -> tuple[Match, ...]:
    """Return our own points compared along the study's dimension; none where it has none or a sweep has one value."""
    if not study.compared:
        return ()
    return tuple(match for sweep in repeated for match in _along(study, sweep))


def _along(study: Study, sweep: Repeated) -> Iterator[Match]:
    for name in study.metrics:
        try:
            yield from along(sweep.runs, study.compared, name, sweep.summaries)
        except PowerlabError:  # a sweep whose points are all alike in the dimension has nothing to compare
            return


def column_title(name: str, study: Study) -> str:
    """Return a metric's heading: its unit, and its title too where another column has the same unit."""
    kind = METRICS[name]
    alike = [other for other in study.metrics if METRICS[other].unit == kind.unit]
    return kind.unit if len(alike) == 1 else f"{kind.title}, {kind.unit}"


def _published(study: Study, case: Case, row: Published) -> Row:
    figures = tuple(row.metric(name) for name in study.metrics)
    return Row(
        case=case.title,
        system=row.system,
        software=row.software or NOTHING,
        conditions=row.conditions or NOTHING,
        covers=row.covers or (NOT_STATED if row.metric("power_w") else NOTHING),
        provenance=_provenance(figures),
        figures=figures,
    )


def _ours(study: Study, case: Case, sweep: Repeated, summary: PointSummary) -> Row:
    figures = tuple(summary.metric(name) for name in study.metrics)
    total = next((run.total for run in sweep.runs if run.total is not None), None)
    return Row(
        case=case.title,
        system=sweep.device,
        software=f"powerlab, {summary.point.workload.engine}",
        conditions=f"{_conditions(summary.point)}; {summary.valid_count} of {summary.run_count} runs valid",
        covers=NOTHING if total is None else total.scope,
        provenance=_provenance(figures) or "no figure",
        figures=figures,
        sweep_id=sweep.sweep_id,
        board=sweep.board,
    )


def _conditions(point: Point) -> str:
    """Return threads, mode, batch and whatever is unusual; the engine has a column of its own."""
    words = [one.value_words(point) for one in shown([point]) if one.title not in {"model", "engine"}]
    if point.workload.precision == "fp32":
        words.insert(0, "fp32")
    return ", ".join(filter(None, words))


def _provenance(figures: Sequence[Metric | None]) -> str:
    """Return the one word of a row, or each word with the units it is about."""
    units: dict[str, list[str]] = {}
    for metric in figures:
        if metric is not None:
            units.setdefault(metric.provenance.value, []).append(METRICS[metric.name].unit)
    if len(units) < 2:
        return "".join(units)
    return "; ".join(f"{word}: {', '.join(dict.fromkeys(found))}" for word, found in units.items())
