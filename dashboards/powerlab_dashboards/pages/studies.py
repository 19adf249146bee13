"""The study pages: published figures beside those of the sweeps in the store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy.orm import Session

from powerlab.analysis.dimensions import varying
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point
from powerlab.protocol.records import SweepRecord
from powerlab.reports.text import figure_text
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.repeats import boards_of_sweeps, points_with_runs, runs_of_sweeps
from powerlab.studies.registry import STUDIES
from powerlab.studies.study import Study
from powerlab.studies.table import Repeated, Row, column_title, compared, rows
from powerlab_dashboards.charts.registry import STUDY_CHARTS
from powerlab_dashboards.charts.study_figures import StudyCase
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.render import not_found, page

SWEEP_LIMIT = 200
"""How many of the newest sweeps are looked through."""
MOST_SHOWN = 8
"""How many of them are shown at most."""
_MOST_CASES = 100


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/studies``, ``/studies/{name}`` and the figures of its charts."""

    @router.get("/studies")
    def studies() -> Response:
        return page("studies.html", section="studies", studies=STUDIES.values())

    @router.get("/studies/{name}")
    def study_page(name: str) -> Response:
        if name not in STUDIES:
            return not_found(f"There is no study named {name}; there are {', '.join(STUDIES)}.")
        study = STUDIES[name]
        with store.session() as session:
            repeated = repeated_in(session, study)
        about = [one for one in repeated if study.is_about(one.board)]
        matches = compared(study, about)
        return page(
            "study.html",
            section="studies",
            study=study,
            titles=[column_title(metric, study) for metric in study.metrics],
            cases=_cases(rows(study, about)),
            others=_cases(_own(rows(study, [one for one in repeated if one not in about]))),
            matches=matches,
            name_of=varying(side.point for match in matches for side in (match.one, match.other)),
            metric_kinds=METRICS,
            figure_text=figure_text,
            ratio_words=ratio_words,
            verdict_words=verdict_words,
            sweep_limit=SWEEP_LIMIT,
            most_shown=MOST_SHOWN,
            charts=STUDY_CHARTS.values(),
        )

    @router.get("/studies/{name}/charts/{chart}")
    def study_figure(
        name: str,
        chart: str,
        case: Annotated[int, Query(ge=0, le=_MOST_CASES)] = 0,
        theme: str = "light",
        narrow: bool = False,
    ) -> Response:
        """Return a figure of one part of a study's table, counted from 0."""
        if name not in STUDIES or chart not in STUDY_CHARTS:
            return not_found(f"There is no chart named {chart} of a study named {name}.")
        study = STUDIES[name]
        with store.session() as session:
            repeated = [one for one in repeated_in(session, study) if study.is_about(one.board)]
        found = [part for _, part in _cases(rows(study, repeated))]
        if case >= len(found):
            return not_found(f"The study {name} has {len(found)} parts.")
        view = view_of(theme, narrow=narrow)
        return figure_response(STUDY_CHARTS[chart].build(StudyCase(study=study, rows=found[case]), view))


def _cases(table: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    return [(case, list(found)) for case, found in groupby(table, key=lambda row: row.case)]


def _own(table: Sequence[Row]) -> list[Row]:
    """Return our rows, without those that were published."""
    return [row for row in table if row.sweep_id]


def repeated_in(session: Session, study: Study) -> list[Repeated]:
    """Return what the store has of a study: of every device, each point from its newest sweep.

    Boards that the study is about come first, then the others; the newest sweep first.
    """
    models = {model for case in study.cases for model in case.models}
    asked: list[tuple[SweepRecord, list[Point]]] = []
    for record in queries.list_sweeps(session, limit=SWEEP_LIMIT):
        points: Sequence[Point] = () if models.isdisjoint(record.plan.models) else record.plan.points()
        if study.asked_by(points):
            asked.append((record, [point for point in points if study.holds(point)]))
    boards = boards_of_sweeps(session, [record.id for record, _ in asked])
    asked.sort(key=lambda one: not study.is_about(boards.get(one[0].id, "")))
    there = points_with_runs(session, [record.id for record, _ in asked])
    chosen: dict[str, tuple[str, set[Point]]] = {}
    seen: set[tuple[str, Point]] = set()
    for record, points in asked:
        new = {one for one in points if (record.device_id, one) not in seen and (record.id, one.id) in there}
        if new and len(chosen) < MOST_SHOWN:
            chosen[record.id] = record.device_name, new
            seen |= {(record.device_id, point) for point in new}
    runs = runs_of_sweeps(session, chosen)
    return [
        Repeated(
            sweep_id=sweep_id,
            device=name,
            runs=tuple(run for run in runs[sweep_id] if run.point in new),
            board=boards.get(sweep_id, ""),
        )
        for sweep_id, (name, new) in chosen.items()
    ]
