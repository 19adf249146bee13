"""Trends over a database's sweeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Select, or_, select
from sqlalchemy.orm import Session

from powerlab.analysis.trends.trends import Trend, trends
from powerlab.domain.run import Run
from powerlab.store.reads import queries
from powerlab.store.reads.run_rows import read_runs, run_rows
from powerlab.store.tables import DeviceRow, PointRow, RunRow, SweepRow, WorkloadRow

MOST_SWEEPS = 200
"""Sweeps that are looked at, unless fewer are asked for: the newest."""


def read_trends(
    session: Session, model: str, names: Sequence[str], *, device_id: str | None = None, most: int = MOST_SWEEPS
) -> tuple[Trend, ...]:
    """Return the trends of a model.

    Args:
        session: where to read.
        model: its name, of whatever version: without a digest it means all of that name.
        names: the metrics.
        device_id: the device; None for all.
        most: sweeps to look at, the newest.

    Raises:
        NotFoundError: there is no such device.
    """
    if device_id is not None:
        queries.device(session, device_id)
    versions = WorkloadRow.model.startswith(f"{model}@sha256:", autoescape=True)
    loads = select(WorkloadRow.id).where(or_(WorkloadRow.model == model, versions))
    having = select(PointRow.sweep_id).where(PointRow.workload_id.in_(loads))
    wanted = (
        select(SweepRow.id, DeviceRow.name)
        .join(DeviceRow, DeviceRow.id == SweepRow.device_id)
        .where(SweepRow.id.in_(having))
        .order_by(SweepRow.created_at.desc(), SweepRow.id.desc())
        .limit(most)
    )
    if device_id is not None:
        wanted = wanted.where(SweepRow.device_id == device_id)
    found = session.execute(wanted).all()
    runs = _runs(session, [sweep_id for sweep_id, _ in found], loads, names)
    return trends(((name, runs[sweep_id]) for sweep_id, name in found), names)


def _runs(
    session: Session, sweep_ids: Sequence[str], loads: Select[int], names: Sequence[str]
) -> Mapping[str, Sequence[Run]]:
    """Return the runs of a model by sweep, in the order in which they arrived, with these figures alone."""
    wanted = run_rows().where(RunRow.sweep_id.in_(sweep_ids), RunRow.workload_id.in_(loads))
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    for _, run in read_runs(session, wanted.order_by(RunRow.received_at), metrics=names):
        runs[run.sweep_id].append(run)
    return runs
