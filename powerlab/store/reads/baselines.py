"""Queries of baselines."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.protocol.baselines import Baseline, BaselineSweep
from powerlab.store.errors import NotFoundError
from powerlab.store.tables import BaselineSweepRow, DeviceRow, SweepRow


def list_baselines(session: Session, *, limit: int | None = None, after: str | None = None) -> list[Baseline]:
    """Return baselines in the order of their names; ``after`` is the name of the last one seen."""
    names = select(BaselineSweepRow.name).distinct().order_by(BaselineSweepRow.name).limit(limit)
    if after is not None:
        names = names.where(BaselineSweepRow.name > after)
    return _with_sweeps(session, BaselineSweepRow.name.in_(session.scalars(names).all()))


def baseline(session: Session, name: str) -> Baseline:
    """Return one baseline; raises NotFoundError."""
    for found in _with_sweeps(session, BaselineSweepRow.name == name):
        return found
    raise NotFoundError(
        f"there is no baseline {name!r}; `powerlab baseline list` (GET /api/v1/baselines) lists them, `powerlab "
        "baseline set` makes one."
    )


def _with_sweeps(session: Session, chosen: Any) -> list[Baseline]:
    wanted = (
        select(BaselineSweepRow, SweepRow.device_id, SweepRow.plan, DeviceRow.name.label("device_name"))
        .join(SweepRow, SweepRow.id == BaselineSweepRow.sweep_id)
        .join(DeviceRow, DeviceRow.id == SweepRow.device_id)
        .where(chosen)
        .order_by(BaselineSweepRow.name, DeviceRow.name, SweepRow.device_id, SweepRow.created_at, SweepRow.id)
    )
    rows = session.execute(wanted).all()
    return [
        Baseline(name=name, sweeps=tuple(map(_to_sweep, own)))
        for name, own in groupby(rows, key=lambda row: str(row[0].name))
    ]


def _to_sweep(row: Any) -> BaselineSweep:
    member, device_id, plan, device_name = row
    return BaselineSweep(
        sweep_id=member.sweep_id,
        device_id=device_id,
        device_name=device_name,
        models=tuple(plan["models"]),
        set_at=member.set_at,
        set_by=member.set_by,
    )
