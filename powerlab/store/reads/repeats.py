"""Queries of the runs of several sweeps at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from powerlab.domain.run import Run
from powerlab.store.reads.run_rows import read_runs, run_rows
from powerlab.store.tables import DeviceSnapshotRow, PointRow, RunRow, SweepRow


def points_with_runs(session: Session, sweep_ids: Collection[str]) -> set[tuple[str, str]]:
    """Return of these sweeps every point that has runs, as the ids of the sweep and of the point."""
    some = exists().where(RunRow.point_id == PointRow.id)
    wanted = select(PointRow.sweep_id, PointRow.key).where(PointRow.sweep_id.in_(sweep_ids), some)
    return {(sweep_id, key) for sweep_id, key in session.execute(wanted)}


def runs_of_sweeps(session: Session, sweep_ids: Collection[str]) -> Mapping[str, Sequence[Run]]:
    """Return by sweep its runs in plan order, repeats of a point in their order."""
    wanted = run_rows().join(PointRow, PointRow.id == RunRow.point_id).where(RunRow.sweep_id.in_(sweep_ids))
    runs: defaultdict[str, list[Run]] = defaultdict(list)
    for _, run in read_runs(session, wanted.order_by(RunRow.sweep_id, PointRow.position, RunRow.repeat)):
        runs[run.sweep_id].append(run)
    return runs


def boards_of_sweeps(session: Session, sweep_ids: Collection[str]) -> Mapping[str, str]:
    """Return by sweep which board its device was when the sweep was made."""
    board = DeviceSnapshotRow.document["device"]["board"].as_string()
    wanted = select(SweepRow.id, board).join(DeviceSnapshotRow, DeviceSnapshotRow.id == SweepRow.snapshot_id)
    rows = session.execute(wanted.where(SweepRow.id.in_(sweep_ids)))
    return {row[0]: row[1] for row in rows}
