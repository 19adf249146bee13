"""Export of all runs, or of the traces of a sweep or run, streamed as CSV, NDJSON or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from powerlab.domain.run import Verdict
from powerlab.protocol.export import FIGURE_COLUMNS, csv_lines, figure_rows, ndjson_lines
from powerlab.protocol.trace_export import trace_csv_lines, trace_ndjson_lines
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.filters import RunFilter
from powerlab.store.reads.trace_stream import chosen_run, stream_chunks
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.roles import Requires

router = APIRouter(prefix="/exports", tags=["exports"])


class Format(StrEnum):
    """How a table is written: text with a line a row, a JSON document a line, or columns in row groups."""

    CSV = "csv"
    NDJSON = "ndjson"
    PARQUET = "parquet"


_PIECE_BYTES = 1 << 16
_MEDIA_TYPES = {
    Format.CSV: "text/csv",
    Format.NDJSON: "application/x-ndjson",
    Format.PARQUET: "application/vnd.apache.parquet",
}


@router.get("/runs", dependencies=[Requires.viewer], response_class=StreamingResponse)
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
    """Stream runs in the order in which they arrived: a row a figure (CSV, Parquet), or a document a run (NDJSON)."""
    if sweep_id is not None:
        queries.sweep(session, sweep_id)
    filters = RunFilter(sweep_id=sweep_id, device_id=device_id, model=model, verdict=verdict)
    return _attachment(_runs(store, filters, format), "runs", format)


@router.get("/traces", dependencies=[Requires.viewer], response_class=StreamingResponse)
def export_traces(
    store: StoreDep,
    session: ReadSession,
    *,
    format: Format = Format.CSV,  # noqa: A002 - the name of the query parameter
    sweep_id: str | None = None,
    run_id: str | None = None,
) -> StreamingResponse:
    """Stream all that was recorded with a run, or with a sweep's runs: a row a sample, or a document a chunk (NDJSON).

    That is power and energy, idle baselines included, latencies and temperatures; nothing is decimated. ``run_id`` may
    be the beginning of an identifier, where no other run's begins so.
    """
    found = chosen_run(session, sweep_id, run_id)
    return _attachment(_traces(store, sweep_id, found, format), "traces", format)


def _attachment(parts: Iterator[str] | Iterator[bytes], name: str, format_: Format) -> StreamingResponse:
    headers = {"Content-Disposition": f'attachment; filename="powerlab-{name}.{format_.value}"'}
    return StreamingResponse(_pieces(parts), media_type=_MEDIA_TYPES[format_], headers=headers)


def _pieces(parts: Iterator[str] | Iterator[bytes]) -> Iterator[bytes]:
    """Yield the first part at once, and the others together: each piece is a thread's turn and a call to the socket."""
    waiting: list[bytes] = []
    size, enough = 0, 1
    for part in parts:
        waiting.append(part.encode() if isinstance(part, str) else part)
        size += len(waiting[-1])
        if size >= enough:
            yield b"".join(waiting)
            waiting, size, enough = [], 0, _PIECE_BYTES
    if waiting:
        yield b"".join(waiting)


def _runs(store: Store, filters: RunFilter, format_: Format) -> Iterator[str] | Iterator[bytes]:
    with store.session() as session:
        runs = (run for _, run in queries.stream_runs(session, filters))
        match format_:
            case Format.CSV:
                yield from csv_lines(runs)
            case Format.NDJSON:
                yield from ndjson_lines(runs)
            case Format.PARQUET:
                from powerlab.store.reads.parquet import rows_as_parquet

                yield from rows_as_parquet(FIGURE_COLUMNS, figure_rows(runs))


def _traces(store: Store, sweep_id: str | None, run_id: str | None, format_: Format) -> Iterator[str] | Iterator[bytes]:
    with store.session() as session:
        chunks = stream_chunks(session, sweep_id, run_id)
        match format_:
            case Format.CSV:
                yield from trace_csv_lines(chunks)
            case Format.NDJSON:
                yield from trace_ndjson_lines(chunks)
            case Format.PARQUET:
                from powerlab.store.reads.parquet import traces_as_parquet

                yield from traces_as_parquet(chunks)
