"""Results of a sweep without reading all its runs: summaries of points, verdicts, runs of some points.

Runs never change, so the summaries of a sweep that is over are worked out once and kept
(:mod:`powerlab.store.maintenance.summary_worker`). As long as they are not, or where a run came late, they are worked
out here.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.analysis.summary import METHOD, PointSummary, summarise
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.store.reads import queries
from powerlab.store.reads.run_rows import read_runs, run_rows
from powerlab.store.tables import PointRow, RunRow, SweepSummaryRow

_decoder = msgspec.msgpack.Decoder(tuple[PointSummary, ...])


def packed(summaries: Sequence[PointSummary]) -> bytes:
    """Return summaries as compressed MessagePack, which keeps every float; :func:`unpacked` gives them back."""
    return zlib.compress(msgspec.msgpack.encode(summaries))


def unpacked(document: bytes) -> tuple[PointSummary, ...]:
    """Return what :func:`packed` was given."""
    return _decoder.decode(zlib.decompress(document))


def summaries_of_sweep(session: Session, sweep_id: str) -> tuple[PointSummary, ...]:
    """Return one summary for each point that has runs, in plan order.

    Raises:
        NotFoundError: there is no such sweep.
    """
    stored = select(func.count()).where(RunRow.sweep_id == sweep_id).scalar_subquery()
    wanted = select(SweepSummaryRow.document).where(
        SweepSummaryRow.sweep_id == sweep_id, SweepSummaryRow.method == METHOD, SweepSummaryRow.run_count == stored
    )
    document = session.scalar(wanted)
    return summarise(queries.runs_of_sweep(session, sweep_id)) if document is None else unpacked(document)


def runs_of_points(session: Session, sweep_id: str, points: Collection[Point]) -> list[Run]:
    """Return the runs of some of a sweep's points, in plan order, repeats of a point in their order."""
    wanted = run_rows().join(PointRow, PointRow.id == RunRow.point_id)
    wanted = wanted.where(PointRow.sweep_id == sweep_id, PointRow.key.in_({point.id for point in points}))
    return [run for _, run in read_runs(session, wanted.order_by(PointRow.position, RunRow.repeat))]


def verdicts_of_sweep(session: Session, sweep_id: str) -> Mapping[Verdict, int]:
    """Return how many runs of a sweep have each verdict, the most frequent first."""
    count = func.count()
    wanted = select(RunRow.verdict, count).where(RunRow.sweep_id == sweep_id).group_by(RunRow.verdict)
    rows = session.execute(wanted.order_by(count.desc(), RunRow.verdict))
    return {Verdict(verdict): number for verdict, number in rows}
