"""All samples of a sweep or run, streamed chunk by chunk for exports."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.trace_export import Recorded
from powerlab.store.maintenance.retired import check_traces_kept, traces_kept_since
from powerlab.store.reads import queries
from powerlab.store.tables import RunRow
from powerlab.store.traces.base import trace_store


def chosen_run(session: Session, sweep_id: str | None, run_id: str | None) -> str | None:
    """Return the whole id of the run whose traces are wanted; None where a sweep's are.

    Raises:
        NotFoundError: there is no such sweep or run.
        RetiredError: the traces of that run are no longer kept.
        PowerlabError: neither is named, or several runs begin so.
    """
    if sweep_id is None and run_id is None:
        raise PowerlabError("all traces at once would be too many; give run_id or sweep_id.")
    if sweep_id is not None:
        queries.sweep(session, sweep_id)
    if run_id is None:
        return None
    found = queries.run_id_from(session, run_id)
    check_traces_kept(session, found)
    return found


def stream_chunks(session: Session, sweep_id: str | None, run_id: str | None) -> Iterator[Recorded]:
    """Yield chunks, a few in memory at a time: runs in the order in which they arrived, rails by name, then by time.

    Runs whose traces are no longer kept are left out, also where not all of them are gone yet.
    """
    wanted = select(RunRow.id, RunRow.sweep_id).order_by(RunRow.received_at, RunRow.id)
    since = traces_kept_since(session)
    if since is not None:
        wanted = wanted.where(RunRow.received_at >= since)
    if sweep_id is not None:
        wanted = wanted.where(RunRow.sweep_id == sweep_id)
    if run_id is not None:
        wanted = wanted.where(RunRow.id == run_id)
    for run, sweep in session.execute(wanted).all():
        for piece in trace_store(session).scan(session, run):
            time_ns, value = piece.samples()
            yield Recorded(run_id=run, sweep_id=sweep, rail=piece.rail, part=piece.part, time_ns=time_ns, value=value)
