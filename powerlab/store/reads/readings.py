"""Queries of telemetry: a device's last minutes, and one line for each device of a fleet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.domain.sweep import Point
from powerlab.protocol.fleet import FRESH_S, LastReading
from powerlab.protocol.readings import LiveRecord, PhaseRecord, ReadingRecord, Snapshot
from powerlab.protocol.wire import from_document
from powerlab.store.tables import DevicePhaseRow, DeviceReadingRow

SHOWN = timedelta(minutes=5)
"""How far back a page looks."""


def last_readings(session: Session, now: datetime, device_ids: Collection[str] | None = None) -> dict[str, LastReading]:
    """Return the last reading of each device that has sent one in the last minutes; of all devices for None."""
    row = DeviceReadingRow
    wanted = select(row.device_id, row.at, row.power_w, row.provenance, row.hottest_c, row.clock_mhz, row.mode)
    wanted = wanted.where(row.at >= now - SHOWN).order_by(row.at)
    if device_ids is not None:
        wanted = wanted.where(row.device_id.in_(device_ids))
    found: dict[str, list[tuple[datetime, float | None]]] = {}
    newest = {}
    for one in session.execute(wanted):
        newest[one.device_id] = one
        found.setdefault(one.device_id, []).append((one.at, one.power_w))
    return {
        device_id: LastReading(
            at=one.at,
            fresh=(now - one.at).total_seconds() <= FRESH_S,
            power_w=one.power_w,
            provenance=None if one.provenance is None else Provenance(one.provenance),
            hottest_c=one.hottest_c,
            clock_mhz=one.clock_mhz,
            mode=one.mode,
            history=tuple(((at - one.at).total_seconds(), power_w) for at, power_w in found[device_id]),
        )
        for device_id, one in newest.items()
    }


def live(session: Session, device_id: str, since: datetime) -> tuple[LiveRecord, int]:
    """Return a device's readings since then and its phase, and the number of the last reading."""
    found = read_after(session, {device_id: 0}, since)[device_id]
    phase = phases(session, [device_id]).get(device_id)
    return LiveRecord(readings=tuple(record for _, record in found), phase=phase), found[-1][0] if found else 0


def read_after(
    session: Session, after: Mapping[str, int], since: datetime
) -> dict[str, list[tuple[int, ReadingRecord]]]:
    """Return by device the readings behind a number, and since then, each with its number, in order.

    One agent sends a device's readings, one request after the other, so that of a device none is seen too late.
    """
    row = DeviceReadingRow
    behind = or_(*(and_(row.device_id == device_id, row.id > last) for device_id, last in after.items()))
    wanted = select(row.id, row.device_id, row.at, row.document).where(behind, row.at >= since).order_by(row.id)
    found: dict[str, list[tuple[int, ReadingRecord]]] = {device_id: [] for device_id in after}
    for one in session.execute(wanted):
        record = ReadingRecord(at=one.at, seen=from_document(one.document, Snapshot))
        found[one.device_id].append((one.id, record))
    return found


def phases(session: Session, device_ids: Collection[str] | None = None) -> dict[str, PhaseRecord]:
    """Return the phases that agents reported last, by device; of all devices for None."""
    wanted = select(DevicePhaseRow)
    if device_ids is not None:
        wanted = wanted.where(DevicePhaseRow.device_id.in_(device_ids))
    return {
        row.device_id: PhaseRecord(
            sweep_id=row.sweep_id,
            phase=RunPhase(row.phase),
            since=row.since,
            ends_at=row.ends_at,
            point=None if row.point is None else from_document(row.point, Point),
            run_index=row.run_index,
            run_count=row.run_count,
        )
        for row in session.scalars(wanted)
    }
