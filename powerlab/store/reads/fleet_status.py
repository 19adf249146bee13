"""What the fleet does now: who is online, what is measured, and what went wrong in the last day.

The effort grows with the devices, with the jobs that run, and with the runs of the last day that were not valid.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Integer, Text, cast, func, select
from sqlalchemy.orm import Session

from powerlab.domain.device import Device
from powerlab.domain.run import Verdict
from powerlab.protocol.fleet import Activity, FleetMember, RunningSweep
from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.protocol.wire import reader
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.queries import list_sweeps
from powerlab.store.reads.readings import phases
from powerlab.store.tables import DeviceRow, DeviceSnapshotRow, JobRow, RunRow

OFFLINE_AFTER_S = 180.0
"""Silence of an agent after which its device counts as offline: it asks for jobs all the time, and contacts are written
down once a minute."""
DAY = timedelta(days=1)
_device = reader(Device)


def fleet_status(session: Session, now: datetime, *, device_id: str | None = None) -> tuple[FleetMember, ...]:
    """Return every device, or one, as it is now, in the order of their names."""
    held = sorted(_running(session, now, device_id), key=lambda one: not one.silent)
    running = {one.record.device_id: one for one in held}  # of several, the one whose lease is kept
    following = {name: one for one in held for name in one.record.nodes}
    failed, throttled = _bad_runs(session, now - DAY)
    ended = select(JobRow.device_id, func.count().label("sweeps")).group_by(JobRow.device_id)
    ended = ended.where(JobRow.state == SweepState.FAILED.value, JobRow.finished_at >= now - DAY)
    failed_sweeps = {row.device_id: row.sweeps for row in session.execute(ended)}
    devices = [(row, _device(row.said)) for row in _devices(session, device_id)]
    return tuple(
        FleetMember(
            id=row.id,
            device=device,
            seen_at=row.seen_at,
            activity=_activity(row.seen_at, doing, now),
            running=doing,
            failed_runs=failed[row.id],
            failed_sweeps=failed_sweeps.get(row.id, 0),
            throttled_runs=throttled[row.id],
        )
        for row, device in devices
        for doing in (running.get(row.id) or following.get(device.name),)
    )


def _activity(seen_at: datetime, running: RunningSweep | None, now: datetime) -> Activity:
    if running is not None and not running.silent:  # also while it reboots, for as long as it said that takes
        return Activity.BUSY
    if (now - seen_at).total_seconds() > OFFLINE_AFTER_S:
        return Activity.OFFLINE
    return Activity.IDLE if running is None else Activity.BUSY


def _devices(session: Session, device_id: str | None) -> list[Any]:
    last = select(func.max(DeviceSnapshotRow.id)).group_by(DeviceSnapshotRow.device_id)
    said = cast(DeviceSnapshotRow.document["device"], Text).label("said")
    wanted = (
        select(DeviceRow.id, DeviceRow.seen_at, said)
        .join(DeviceSnapshotRow, DeviceSnapshotRow.device_id == DeviceRow.id)
        .order_by(DeviceRow.name)
    )
    if device_id is not None:
        wanted = wanted.where(DeviceRow.id == device_id)
        last = last.where(DeviceSnapshotRow.device_id == device_id)
    return list(session.execute(wanted.where(DeviceSnapshotRow.id.in_(last))))


def _running(session: Session, now: datetime, device_id: str | None) -> list[RunningSweep]:
    records = list_sweeps(session, SweepFilter(state=SweepState.RUNNING, device_id=device_id))
    expected = select(JobRow.sweep_id, JobRow.expected_s).where(JobRow.state == SweepState.RUNNING.value)
    expected_s = {row.sweep_id: row.expected_s for row in session.execute(expected)}
    doing = phases(session, {record.device_id for record in records}) if records else {}
    return [
        RunningSweep(
            record=record,
            left_s=_left_s(record, expected_s.get(record.id)),
            silent=record.held_until is not None and record.held_until < now,
            phase=said if (said := doing.get(record.device_id)) and said.sweep_id == record.id else None,
        )
        for record in records
    ]


def _left_s(record: SweepRecord, expected_s: float | None) -> float | None:
    if expected_s is None or not record.planned_run_count:
        return None
    return expected_s * max(0.0, 1 - record.stored_run_count / record.planned_run_count)


def _bad_runs(session: Session, since: datetime) -> tuple[Counter[str], Counter[str]]:
    """Return by device how many runs failed, and how many were throttled, which is a rule of the validity checks."""
    slowed = cast(cast(RunRow.findings, Text).contains('"throttled"'), Integer)
    bad = [verdict.value for verdict in (Verdict.FAILED, Verdict.FLAGGED, Verdict.VOID)]
    rows = session.execute(
        select(RunRow.device_id, RunRow.verdict, func.count(), func.sum(slowed))
        .where(RunRow.verdict.in_(bad), RunRow.received_at >= since)
        .group_by(RunRow.device_id, RunRow.verdict)
    )
    failed: Counter[str] = Counter()
    throttled: Counter[str] = Counter()
    for device_id, verdict, count, throttled_count in rows:
        if verdict == Verdict.FAILED.value:
            failed[device_id] += count
        throttled[device_id] += throttled_count
    return failed, throttled
