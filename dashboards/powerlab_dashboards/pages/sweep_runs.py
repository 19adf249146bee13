"""Further pages of a sweep's runs, and the runs of one point."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session

from powerlab.protocol.records import SweepRecord
from powerlab.reports.reproduce import plan_of_point, profile_command
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import runs_of_points, summaries_of_sweep
from powerlab_dashboards.pages.sweep import board_of, common_provenance_word, sweep_title
from powerlab_dashboards.pages.sweep_picker import apply_point_command
from powerlab_dashboards.places import point_words
from powerlab_dashboards.render import not_found, page

RUNS_SHOWN = 100
"""Runs of one page."""
_MOST = 1_000_000_000
"""No sweep has so many runs, and every database can count to it."""


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}/runs``."""

    @router.get("/sweeps/{sweep_id}/runs")
    def sweep_runs(
        request: Request, sweep_id: str, after: Annotated[int, Query(ge=0, le=_MOST)] = 0, point: str = ""
    ) -> Response:
        """Show runs in plan order, skipping the first ``after``; with ``point`` those of one point."""
        try:
            with store.session() as session:
                record = queries.sweep(session, sweep_id)
                if point:
                    return _runs_of_point(session, record, point, str(request.base_url).rstrip("/"))
                runs = queries.runs_of_sweep(session, sweep_id, start=after, most=RUNS_SHOWN)
        except NotFoundError as error:
            return not_found(str(error))
        return page(
            "sweep_runs.html",
            section="sweeps",
            sweep=record,
            title=sweep_title(record),
            runs=runs,
            after=after,
            before=max(0, after - RUNS_SHOWN),
            more=after + len(runs) < record.stored_run_count and bool(runs),
            latency_note=common_provenance_word(runs),
        )


def _runs_of_point(session: Session, record: SweepRecord, point_id: str, server: str) -> Response:
    summaries = summaries_of_sweep(session, record.id)
    summary = next((one for one in summaries if one.point.id == point_id), None)
    if summary is None:
        return not_found(f"The sweep has no runs of a point {point_id!r}.")
    runs = runs_of_points(session, record.id, [summary.point])
    plan = plan_of_point(record.plan, summary.point)
    return page(
        "sweep_point.html",
        section="sweeps",
        sweep=record,
        title=sweep_title(record),
        place=point_words(summary.point),
        summary=summary,
        runs=runs,
        latency_note=common_provenance_word(runs),
        profile_command=profile_command(plan, board_of(session, record)),
        apply_command=apply_point_command(record.id, point_id, server),
    )
