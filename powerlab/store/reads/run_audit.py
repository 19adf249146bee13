"""Audit of a stored run: first its storage, then its figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby

from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Conditions, Run
from powerlab.measure.audit.audit import Audit, audit, audit_of_damaged
from powerlab.measure.audit.compare import Compared
from powerlab.protocol.wire import digest
from powerlab.store.maintenance.retired import check_traces_kept
from powerlab.store.reads import queries
from powerlab.store.tables import RunRow
from powerlab.store.traces.base import Piece, trace_store


def audit_run(session: Session, run_id: str) -> Audit:
    """Audit one run.

    Args:
        session: nothing is written.
        run_id: the run's identifier, or its beginning where no other one begins so.

    Raises:
        NotFoundError: there is no such run.
        RetiredError: its traces are no longer kept.
        PowerlabError: several runs begin so, or the record is not enough to audit the run, with what is missing.
    """
    found = queries.run_id_from(session, run_id)
    check_traces_kept(session, found)
    run, chunks = queries.run(session, found), list(trace_store(session).scan(session, found))
    of_run = tuple(_run_is_as_sent(session.get_one(RunRow, found), run))
    of_chunks = tuple(_chunks_are_whole(chunks))
    if not all(one.equal for one in of_chunks):
        return audit_of_damaged(run, (*of_run, *of_chunks))
    try:
        return audit(run, queries.recorded(session, found), (*of_run, *of_chunks))
    except PowerlabError:
        if all(one.equal for one in of_run):
            raise
        # A run that was changed until it cannot be audited any more was changed all the same.
        return audit_of_damaged(run, (*of_run, *of_chunks))


def _run_is_as_sent(row: RunRow, run: Run) -> Iterator[Compared]:
    """Compare the SHA-256 with which a run arrived; one from before conditions had all their fields has another."""
    if row.conditions is None or set(row.conditions) != {field.name for field in fields(Conditions)}:
        return
    now = digest(run)
    yield Compared(
        what="SHA-256 of the run",
        stored=row.sha256[:16],
        recomputed=now[:16],
        equal=row.sha256 == now,
        detail="" if row.sha256 == now else "the run was changed after it was stored",
    )


def _chunks_are_whole(chunks: Sequence[Piece]) -> Iterator[Compared]:
    """Read every chunk of samples again, and look for chunks that are gone."""
    damaged = False
    for (key, part), of_trace in groupby(chunks, key=lambda chunk: (chunk.rail.key, chunk.part.value)):
        complaints = [one for position, chunk in enumerate(of_trace) if (one := _complaint(chunk, position))]
        if complaints:
            damaged = True
            yield Compared(
                what=f"samples of {key} ({part})",
                stored=f"{len(complaints)} of its chunks",
                recomputed="damaged",
                equal=False,
                detail="; ".join(complaints),
            )
    if not damaged:
        yield Compared(what="samples", stored=f"{len(chunks)} chunks", recomputed="all whole", equal=True)


def _complaint(chunk: Piece, position: int) -> str:
    """Say what is wrong with a chunk; empty where nothing is."""
    if chunk.position != position:
        return f"chunk {position} is missing"
    try:
        chunk.samples()
    except PowerlabError as error:
        return f"chunk {position}: {str(error).partition(';')[0].rstrip('.')}"
    return ""
