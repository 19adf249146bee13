"""All runs at once, streamed, as CSV or NDJSON."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from powerlab.domain.run import Verdict
from powerlab.protocol.export import csv_lines, ndjson_lines
from powerlab.store import Store, queries
from powerlab_api.deps import ReadSession, StoreDep

router = APIRouter(prefix="/exports", tags=["exports"])


class Format(StrEnum):
    """How runs are written: a line a figure, or a JSON document a run."""

    CSV = "csv"
    NDJSON = "ndjson"


@router.get("/runs", response_class=StreamingResponse)
def export_runs(
    store: StoreDep,
    session: ReadSession,
    *,
    format: Format = Format.CSV,  # noqa: A002 - the name of the query parameter
    sweep_id: str | None = None,
    device_id: str | None = None,
    model: str | None = None,
    verdict: Verdict | None = None,
) -> StreamingResponse:
    """Stream runs in the order in which they arrived."""
    if sweep_id is not None:
        queries.sweep(session, sweep_id)
    wish = queries.RunFilter(sweep_id=sweep_id, device_id=device_id, model=model, verdict=verdict)
    media = "text/csv" if format is Format.CSV else "application/x-ndjson"
    headers = {"Content-Disposition": f'attachment; filename="powerlab-runs.{format.value}"'}
    return StreamingResponse(_lines(store, wish, format), media_type=media, headers=headers)


def _lines(store: Store, wish: queries.RunFilter, format_: Format) -> Iterator[str]:
    with store.session() as session:
        runs = (run for _, run in queries.stream_runs(session, wish))
        yield from csv_lines(runs) if format_ is Format.CSV else ndjson_lines(runs)
