"""Telemetry as it arrives: kept for some minutes, within bounds, so that it never grows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.readings import DeviceReading, PhaseReport, ReadingsUpload, Snapshot
from powerlab.protocol.wire import to_document
from powerlab.store.errors import ForbiddenError
from powerlab.store.tables import DevicePhaseRow, DeviceReadingRow, DeviceWatchRow, SweepRow

KEPT = timedelta(minutes=10)
"""How long readings are kept."""
PERIOD_S, WATCHED_PERIOD_S = 10.0, 1.0
"""How often readings are wanted, and how often of a device that somebody watches."""
WATCHED_FOR = timedelta(seconds=30)
MOST_READINGS = 120
MOST_ITEMS, MOST_PROCESSORS, MOST_CHARACTERS = 128, 2048, 300
_LARGEST = 1e9


def store_readings(session: Session, device_id: str, said: ReadingsUpload, now: datetime) -> float:
    """Keep readings and a phase, forget what is old, and return how often readings are wanted, in s.

    Raises:
        PowerlabError: there are too many, or they hold what cannot be one.
        ForbiddenError: the phase is of a sweep of another device, or of none.
    """
    if len(said.readings) > MOST_READINGS:
        raise PowerlabError(f"one request holds {MOST_READINGS} readings at most, not {len(said.readings)}.")
    rows = [_row(device_id, reading, now) for reading in said.readings]
    if rows:
        session.execute(insert(DeviceReadingRow), rows)
    session.execute(
        delete(DeviceReadingRow)
        .where(DeviceReadingRow.device_id == device_id, DeviceReadingRow.at < now - KEPT)
        .execution_options(synchronize_session=False)
    )
    if said.phase is not None:
        _keep_phase(session, device_id, said.phase, now)
    watch = session.get(DeviceWatchRow, device_id)
    return WATCHED_PERIOD_S if watch is not None and watch.until > now else PERIOD_S


def forget_old(session: Session, now: datetime) -> None:
    """Remove the old readings of devices that send no more."""
    old = delete(DeviceReadingRow).where(DeviceReadingRow.at < now - KEPT)
    session.execute(old.execution_options(synchronize_session=False))


def note_watched(session: Session, device_ids: Iterable[str], now: datetime) -> None:
    """Note that somebody watches devices now."""
    insert_ = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    for device_id in sorted(device_ids):  # in one order, so that two servers never wait for each other
        row = insert_(DeviceWatchRow).values(device_id=device_id, until=now + WATCHED_FOR)
        session.execute(row.on_conflict_do_update(index_elements=["device_id"], set_={"until": now + WATCHED_FOR}))


def _keep_phase(session: Session, device_id: str, said: PhaseReport, now: datetime) -> None:
    _check_numbers("a phase", (said.left_s, float(said.run_index), float(said.run_count)))
    if min(said.run_index, said.run_count, said.left_s or 0.0) < 0:
        raise PowerlabError("a phase holds numbers from 0 on.")
    sweep = session.get(SweepRow, said.sweep_id)
    if sweep is None or sweep.device_id != device_id:
        raise ForbiddenError(f"the sweep {said.sweep_id!r} is not one of this device.")
    left_s = None if said.left_s is None else min(said.left_s, 86400.0)
    values = {
        "sweep_id": said.sweep_id,
        "phase": said.phase.value,
        "since": now,
        "ends_at": None if left_s is None else now + timedelta(seconds=left_s),
        "point": None if said.point is None else to_document(said.point),
        "run_index": said.run_index,
        "run_count": said.run_count,
    }
    insert_ = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    row = insert_(DevicePhaseRow).values(device_id=device_id, **values)
    session.execute(row.on_conflict_do_update(index_elements=["device_id"], set_=values))


def _row(device_id: str, reading: DeviceReading, now: datetime) -> dict[str, Any]:
    seen = reading.seen
    _check(reading)
    cpu = [clock.clock_mhz for clock in seen.clocks if clock.name.startswith("CPU")]
    return {
        "device_id": device_id,
        "at": now - timedelta(seconds=reading.age_s),
        "power_w": None if seen.total is None else seen.total.power_w,
        "provenance": None if seen.total is None else seen.total.provenance.value,
        "hottest_c": max((one.celsius for one in seen.temperatures), default=None),
        "clock_mhz": max(cpu, default=None),
        "mode": seen.mode,
        "document": to_document(seen),
    }


def _check(reading: DeviceReading) -> None:
    """Raise PowerlabError where a reading is larger than one can be, or holds a number that is none."""
    seen = reading.seen
    if not (math.isfinite(reading.age_s) and 0 <= reading.age_s <= KEPT.total_seconds()):
        raise PowerlabError(f"a reading is 0 to {KEPT.total_seconds():g} s old when it is sent.")
    if max(len(seen.rails), len(seen.clocks), len(seen.temperatures)) > MOST_ITEMS:
        raise PowerlabError(f"a reading holds {MOST_ITEMS} rails, clocks or temperatures at most.")
    if len(seen.load) > MOST_PROCESSORS:
        raise PowerlabError(f"a reading holds the load of {MOST_PROCESSORS} processors at most.")
    if max(map(len, _texts(seen))) > MOST_CHARACTERS or len(seen.mode) > 200:
        raise PowerlabError(f"a name in a reading has {MOST_CHARACTERS} characters at most, a mode's 200.")
    _check_numbers("a reading", _numbers(seen))


def _texts(seen: Snapshot) -> Iterable[str]:
    yield seen.mode
    yield seen.total.scope if seen.total else ""
    for rail in seen.rails:
        yield from (rail.rail, rail.problem)
    yield from (clock.name for clock in seen.clocks)
    yield from (temperature.name for temperature in seen.temperatures)


def _numbers(seen: Snapshot) -> Iterable[float | None]:
    yield seen.total.power_w if seen.total else None
    yield from (rail.power_w for rail in seen.rails)
    for clock in seen.clocks:
        yield from (clock.clock_mhz, clock.limit_mhz)
    for temperature in seen.temperatures:
        yield from (temperature.celsius, temperature.limit_c)
    yield from seen.load


def _check_numbers(what: str, numbers: Iterable[float | None]) -> None:
    if any(number is not None and not abs(number) <= _LARGEST for number in numbers):
        raise PowerlabError(f"{what} holds a number that is not finite or too large.")
