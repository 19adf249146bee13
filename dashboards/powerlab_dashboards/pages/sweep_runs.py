"""Further pages of a sweep's runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab_dashboards.pages.sweep import RUNS_SHOWN, common_provenance_word, sweep_title
from powerlab_dashboards.render import not_found, page

_MOST = 1_000_000_000
"""No sweep has so many runs, and every database can count to it."""


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}/runs``."""

    @router.get("/sweeps/{sweep_id}/runs")
    def sweep_runs(sweep_id: str, after: Annotated[int, Query(ge=0, le=_MOST)] = 0) -> Response:
        """Show runs in plan order, skipping the first ``after``."""
        try:
            with store.session() as session:
                record = queries.sweep(session, sweep_id)
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
