"""State of the whole fleet in a few queries whose cost does not grow with the stored data.

No query reads runs or traces by the number: counts come from ``device_tally``, and the newest figures of a device by
the identifier of its newest run. The effort grows with devices and jobs alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Text, cast, func, select, text
from sqlalchemy.orm import Session

from powerlab.domain.device import Device
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import Point
from powerlab.protocol.records import BacklogRecord, SweepState
from powerlab.protocol.wire import reader
from powerlab.store.reads.convert import METRIC, POINT, to_backlog, to_metric, to_point
from powerlab.store.tables import (
    DeviceBacklogRow,
    DeviceRow,
    DeviceSnapshotRow,
    DeviceTallyRow,
    JobRow,
    PointRow,
    RunMetricRow,
    RunRow,
    WorkloadRow,
)

ACCEPTED = (Verdict.VALID, Verdict.FLAGGED)
"""Verdicts of runs whose figures may be used; the others measured nothing that counts."""
_IDS = 500
"""Identifiers in one query."""
_TIMEOUT_MS = 5000
"""PostgreSQL gives up after that: a monitor must not add to the load of a database that is too busy."""
_device = reader(Device)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestRun:
    """What a device measured last."""

    point: Point
    verdict: Verdict
    received_at: datetime
    metrics: tuple[Metric, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDevice:
    """A device with what is counted of it.

    Attributes:
        id: a UUID.
        name: unique in the fleet.
        board: which board it is.
        architecture: of its processor.
        simulated: whether it is a simulated board.
        seen_at: when its agent last spoke to a server.
        queued_jobs: jobs that wait for its agent.
        running_jobs: jobs that its agent was given and has not ended.
        runs: by verdict, runs it has ever stored.
        sample_count: samples it has ever stored.
        backlog: what its agent has not uploaded yet; None where it never said.
        newest: the run that arrived last among those that were accepted; None where there is none.
    """

    id: str
    name: str
    board: str
    architecture: str
    simulated: bool
    seen_at: datetime
    queued_jobs: int
    running_jobs: int
    runs: Mapping[Verdict, int]
    sample_count: int
    newest: NewestRun | None
    backlog: BacklogRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The fleet at one time.

    Attributes:
        devices: every device, in the order of their names.
        jobs: how many jobs are in each state.
        expired_leases: running jobs whose agent has been silent for longer than its lease.
        oldest_queued_at: when the job was created that has waited longest; None where none waits.
    """

    devices: tuple[FleetDevice, ...]
    jobs: Mapping[SweepState, int]
    expired_leases: int
    oldest_queued_at: datetime | None


def read_fleet(session: Session, now: datetime) -> Fleet:
    """Return the fleet as the database has it."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SET LOCAL statement_timeout = {_TIMEOUT_MS}"))
    states = session.execute(
        select(JobRow.device_id, JobRow.state, func.count()).group_by(JobRow.device_id, JobRow.state)
    )
    jobs = {(device_id, SweepState(state)): count for device_id, state, count in states}
    totals: Counter[SweepState] = Counter()
    for (_, state), count in jobs.items():
        totals[state] += count
    expired = select(func.count()).where(JobRow.state == SweepState.RUNNING.value, JobRow.deadline < now)
    oldest = select(func.min(JobRow.created_at)).where(JobRow.state == SweepState.QUEUED.value)
    return Fleet(
        devices=tuple(_devices(session, jobs)),
        jobs={state: totals[state] for state in SweepState},
        expired_leases=session.scalar(expired) or 0,
        oldest_queued_at=session.scalar(oldest),
    )


def _devices(session: Session, jobs: Mapping[tuple[str, SweepState], int]) -> list[FleetDevice]:
    tallies: defaultdict[str, list[Any]] = defaultdict(list)
    counted = (DeviceTallyRow.device_id, DeviceTallyRow.verdict, DeviceTallyRow.run_count, DeviceTallyRow.sample_count)
    for tally in session.execute(select(*counted)):
        tallies[tally.device_id].append(tally)
    newest = newest_runs(session)
    said_backlogs = session.execute(select(DeviceBacklogRow.__table__))
    backlogs = {row.device_id: to_backlog(row) for row in said_backlogs}
    last = select(func.max(DeviceSnapshotRow.id)).group_by(DeviceSnapshotRow.device_id)
    # The part of the document at once: to look into it for one word after the other unpacks all of it for each.
    said = cast(DeviceSnapshotRow.document["device"], Text)
    rows = session.execute(
        select(DeviceRow.id, DeviceRow.name, DeviceRow.seen_at, DeviceSnapshotRow.simulated, said.label("said"))
        .join(DeviceSnapshotRow, DeviceSnapshotRow.device_id == DeviceRow.id)
        .where(DeviceSnapshotRow.id.in_(last))
        .order_by(DeviceRow.name)
    )
    return [
        FleetDevice(
            id=row.id,
            name=row.name,
            board=device.board,
            architecture=device.architecture,
            simulated=row.simulated,
            seen_at=row.seen_at,
            queued_jobs=jobs.get((row.id, SweepState.QUEUED), 0),
            running_jobs=jobs.get((row.id, SweepState.RUNNING), 0),
            runs={Verdict(tally.verdict): tally.run_count for tally in tallies.get(row.id, ())},
            sample_count=sum(tally.sample_count for tally in tallies.get(row.id, ())),
            newest=newest.get(row.id),
            backlog=backlogs.get(row.id),
        )
        for row, device in ((row, _device(row.said)) for row in rows)
    ]


def newest_runs(session: Session) -> dict[str, NewestRun]:
    """Return by device the accepted run that arrived last; a device without one is left out."""
    accepted = DeviceTallyRow.verdict.in_([verdict.value for verdict in ACCEPTED])
    found = (DeviceTallyRow.device_id, DeviceTallyRow.verdict, RunRow.id, RunRow.received_at, RunRow.mode)
    rows = session.execute(
        select(*found, *POINT)
        .join(RunRow, RunRow.id == DeviceTallyRow.newest_run_id)
        .join(PointRow, PointRow.id == RunRow.point_id)
        .join(WorkloadRow, WorkloadRow.id == PointRow.workload_id)
        .where(accepted)
        .order_by(RunRow.received_at, RunRow.id)
    )
    last = {row.device_id: row for row in rows}
    metrics = _figures(session, [row.id for row in last.values()])
    return {
        device_id: NewestRun(
            point=to_point(row, row.mode),
            verdict=Verdict(row.verdict),
            received_at=row.received_at,
            metrics=tuple(metrics[row.id]),
        )
        for device_id, row in last.items()
    }


def _figures(session: Session, run_ids: Sequence[str]) -> Mapping[str, Sequence[Metric]]:
    """Return the figures of runs. Their ids are named: for a join PostgreSQL would rather read all there are."""
    metrics: defaultdict[str, list[Metric]] = defaultdict(list)
    for start in range(0, max(1, len(run_ids)), _IDS):
        wanted = select(RunMetricRow.run_id, *METRIC).where(RunMetricRow.run_id.in_(run_ids[start : start + _IDS]))
        found: Iterable[Any] = session.execute(wanted.order_by(RunMetricRow.run_id, RunMetricRow.position))
        for run_id, *figure in found:
            metrics[run_id].append(to_metric(*figure))
    return metrics
