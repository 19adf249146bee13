"""Sweeps that several devices carry out together: who they are, and when their job may be given out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import Session

from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store.reads.bookings import bookings_ahead, let_through
from powerlab.store.tables import DeviceRow, JobRow, SweepNodeRow, SweepRow

ASKED_S = 15.0
"""For how long a device that asked for work counts as asking: agents ask every five seconds."""
ASK_AGAIN_S = 3.0
"""How often it is noted."""


def node_rows(session: Session, sweep_id: str) -> Sequence[SweepNodeRow]:
    """Return the further devices of a sweep, in their order."""
    wanted = select(SweepNodeRow).where(SweepNodeRow.sweep_id == sweep_id).order_by(SweepNodeRow.rank)
    return session.scalars(wanted).all()


def sweeps_with_others(session: Session, device_id: str) -> Sequence[str]:
    """Return the sweeps that a device carries out together with another one, which is the first."""
    return session.scalars(select(SweepNodeRow.sweep_id).where(SweepNodeRow.device_id == device_id)).all()


def with_nodes(session: Session, records: list[SweepRecord]) -> list[SweepRecord]:
    """Return sweeps with the names of their further devices; asks only where a plan has some."""
    wanted = [one.id for one in records if one.plan.nodes > 1]
    if not wanted:
        return records
    names = defaultdict[str, list[str]](list)
    found = (
        select(SweepNodeRow.sweep_id, DeviceRow.name)
        .join(DeviceRow, DeviceRow.id == SweepNodeRow.device_id)
        .where(SweepNodeRow.sweep_id.in_(wanted))
        .order_by(SweepNodeRow.rank)
    )
    for sweep_id, name in session.execute(found):
        names[sweep_id].append(name)
    return [_with_names(one, tuple(names[one.id])) if one.id in names else one for one in records]


def _with_names(record: SweepRecord, names: tuple[str, ...]) -> SweepRecord:
    waits = record.state is SweepState.QUEUED and not record.detail
    detail = f"begins when {', '.join((record.device_name, *names))} ask for work at the same time"
    return replace(record, nodes=names, detail=detail if waits else record.detail)


def all_ask(now: datetime) -> ColumnElement[bool]:
    """Return what is true of jobs whose further devices all ask for work; jobs of one device have none."""
    asked = and_(SweepNodeRow.asked_at.is_not(None), SweepNodeRow.asked_at >= now - timedelta(seconds=ASKED_S))
    missing = select(SweepNodeRow.sweep_id).where(SweepNodeRow.sweep_id == JobRow.sweep_id, ~asked)
    return ~missing.exists()


def devices_to_follow(now: datetime) -> Select[str]:
    """Return the query for the devices that may follow the first one of a job."""
    joined = select(SweepNodeRow.device_id).join(JobRow, JobRow.sweep_id == SweepNodeRow.sweep_id)
    return joined.where(_runs(now), SweepNodeRow.fencing_token == JobRow.fencing_token)


def followed(session: Session, device_id: str, now: datetime) -> tuple[SweepNodeRow, JobRow] | None:
    """Return the running job that a device is a further device of; None where there is none."""
    wanted = select(SweepNodeRow, JobRow).join(JobRow, JobRow.sweep_id == SweepNodeRow.sweep_id)
    found = session.execute(wanted.where(SweepNodeRow.device_id == device_id, _runs(now))).first()
    return None if found is None else (found[0], found[1])


def _runs(now: datetime) -> ColumnElement[bool]:
    return and_(JobRow.state == SweepState.RUNNING.value, JobRow.deadline >= now)


def wanting(
    session: Session, device_id: str, now: datetime, to_be_given: ColumnElement[bool]
) -> Sequence[SweepNodeRow]:
    """Return the places of a device in jobs that may begin when it asks, and whose asking is not noted yet."""
    wanted = (
        select(SweepNodeRow)
        .join(JobRow, JobRow.sweep_id == SweepNodeRow.sweep_id)
        .join(SweepRow, SweepRow.id == SweepNodeRow.sweep_id)
        .where(
            SweepNodeRow.device_id == device_id,
            or_(SweepNodeRow.asked_at.is_(None), SweepNodeRow.asked_at < now - timedelta(seconds=ASK_AGAIN_S)),
            to_be_given,
            *let_through(bookings_ahead(session, device_id, now), now),
        )
    )
    return session.scalars(wanted).all()
