"""The points of a sweep as a CSV file: those that the reader's words find, in the reader's order."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from fastapi import APIRouter, Request, Response

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.sweep_results import summaries_of_sweep
from powerlab_dashboards.pages.sweep_asked import Asked
from powerlab_dashboards.pages.sweep_table import in_order, matching
from powerlab_dashboards.render import HEADERS, not_found


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/sweeps/{id}/points.csv``."""

    @router.get("/sweeps/{sweep_id}/points.csv")
    def points_csv(request: Request, sweep_id: str) -> Response:
        try:
            with store.session() as session:
                queries.sweep(session, sweep_id)
                summaries = summaries_of_sweep(session, sweep_id)
        except NotFoundError as error:
            return not_found(str(error))
        asked = Asked.of(request.query_params)
        text = io.StringIO()
        csv.writer(text).writerows(_rows(in_order(matching(summaries, asked.words), asked.sort)))
        name = f"powerlab-points-{sweep_id[:8]}.csv"
        headers = HEADERS | {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)


def _rows(summaries: Sequence[PointSummary]) -> Iterator[list[object]]:
    """Yield the headings, and a row a point: its dimensions, and each figure with its interval and provenance."""
    names = [name for name in METRICS if any(summary.metric(name) for summary in summaries)]
    parts = ("", "_low", "_high", "_provenance")
    dimensions = [dimension.title.replace(" ", "_") for dimension in DIMENSIONS]
    yield ["point_id", *dimensions, "valid_runs", "runs", *(f"{name}{part}" for name in names for part in parts)]
    for summary in summaries:
        read = [dimension.read(summary.point) for dimension in DIMENSIONS]
        row: list[object] = [summary.point.id, *read, summary.valid_count, summary.run_count]
        for name in names:
            figure = summary.metric(name)
            row += [""] * 4 if figure is None else [figure.value, figure.low, figure.high, figure.provenance.value]
        yield row
