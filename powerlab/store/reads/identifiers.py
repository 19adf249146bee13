"""What an identifier, or the beginning of one, stands for in a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVarTuple

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from powerlab.protocol.identifiers import Identifier, Kind
from powerlab.store.tables import CampaignRow, DeviceRow, JobRow, ModelRow, PointRow, RunRow, SweepRow

MOST = 20
"""How many of each kind are returned; whoever needs more gives more characters."""
_Columns = TypeVarTuple("_Columns")


def identifiers(session: Session, beginning: str) -> tuple[Identifier, ...]:
    """Return what has an identifier that begins so, and devices and models whose name does.

    Args:
        session: where to look.
        beginning: of an identifier or a name; an empty one stands for nothing.

    Returns:
        at most :data:`MOST` of each kind, in the order of their identifiers.
    """
    return tuple(_found(session, beginning)) if beginning else ()


def _found(session: Session, beginning: str) -> Iterator[Identifier]:
    def begins(column: InstrumentedAttribute[str]) -> ColumnElement[bool]:
        return column.startswith(beginning, autoescape=True)

    def rows(wanted: Select[*_Columns], column: InstrumentedAttribute[str]) -> Iterator[Any]:
        yield from session.execute(wanted.order_by(column).limit(MOST))

    for id_, sweep_id in rows(select(RunRow.id, RunRow.sweep_id).where(begins(RunRow.id)), RunRow.id):
        yield Identifier(kind=Kind.RUN, id=id_, sweep_id=sweep_id)
    for (id_,) in rows(select(SweepRow.id).where(begins(SweepRow.id)), SweepRow.id):
        yield Identifier(kind=Kind.SWEEP, id=id_)
    for (id_,) in rows(select(PointRow.key).distinct().where(begins(PointRow.key)), PointRow.key):
        yield Identifier(kind=Kind.POINT, id=id_)
    for id_, sweep_id in rows(select(JobRow.id, JobRow.sweep_id).where(begins(JobRow.id)), JobRow.id):
        yield Identifier(kind=Kind.JOB, id=id_, sweep_id=sweep_id)
    for (id_,) in rows(select(CampaignRow.id).where(begins(CampaignRow.id)), CampaignRow.id):
        yield Identifier(kind=Kind.CAMPAIGN, id=id_)
    named = or_(begins(ModelRow.sha256), begins(ModelRow.name))
    models = select(ModelRow.sha256, ModelRow.name).where(ModelRow.completed_at.is_not(None), named)
    for id_, name in rows(models, ModelRow.sha256):
        yield Identifier(kind=Kind.MODEL, id=id_, name=name)
    devices = select(DeviceRow.id, DeviceRow.name).where(or_(begins(DeviceRow.id), begins(DeviceRow.name)))
    for id_, name in rows(devices, DeviceRow.id):
        yield Identifier(kind=Kind.DEVICE, id=id_, name=name)
