"""The study pages: published figures beside those of the sweeps in the store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from fastapi import APIRouter, Response
from sqlalchemy.orm import Session

from powerlab.analysis.dimensions import varying
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point
from powerlab.protocol.records import SweepRecord
from powerlab.reports.text import figure_text
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.repeats import points_with_runs, runs_of_sweeps
from powerlab.studies.registry import STUDIES
from powerlab.studies.study import Study
from powerlab.studies.table import Repeated, column_title, compared, rows
from powerlab_dashboards.render import not_found, page

SWEEP_LIMIT = 200
"""How many of the newest sweeps are looked through."""
MOST_SHOWN = 8
"""How many of them are shown at most."""


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/studies`` and ``/studies/{name}``."""

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
        matches = compared(study, repeated)
        table = rows(study, repeated)
        return page(
            "study.html",
            section="studies",
            study=study,
            titles=[column_title(metric, study) for metric in study.metrics],
            cases=[(case, list(found)) for case, found in groupby(table, key=lambda row: row.case)],
            matches=matches,
            name_of=varying(side.point for match in matches for side in (match.one, match.other)),
            metric_kinds=METRICS,
            figure_text=figure_text,
            ratio_words=ratio_words,
            verdict_words=verdict_words,
            sweep_limit=SWEEP_LIMIT,
            most_shown=MOST_SHOWN,
        )


def repeated_in(session: Session, study: Study) -> list[Repeated]:
    """Return what the store has of a study, newest first: of every device, each point from its newest sweep."""
    models = {model for case in study.cases for model in case.models}
    asked: list[tuple[SweepRecord, list[Point]]] = []
    for record in queries.list_sweeps(session, limit=SWEEP_LIMIT):
        points: Sequence[Point] = () if models.isdisjoint(record.plan.models) else record.plan.points()
        if study.asked_by(points):
            asked.append((record, [point for point in points if study.holds(point)]))
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
        Repeated(sweep_id=sweep_id, device=name, runs=tuple(run for run in runs[sweep_id] if run.point in new))
        for sweep_id, (name, new) in chosen.items()
    ]
