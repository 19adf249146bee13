"""The runs before and after one, in the order in which a sweep's page lists them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from powerlab.store.tables import PointRow, RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Identifiers of the runs beside one; None at either end of its sweep."""

    previous: str | None
    next: str | None


def neighbours(session: Session, run_id: str) -> Neighbours:
    """Return the runs beside one in its sweep; none for a run that does not exist."""
    place = select(PointRow.sweep_id, PointRow.position, RunRow.repeat).join(PointRow, PointRow.id == RunRow.point_id)
    row = session.execute(place.where(RunRow.id == run_id)).one_or_none()
    if row is None:
        return Neighbours(previous=None, next=None)
    order = (PointRow.position, RunRow.repeat)
    # The bound on the position alone is what an index can use: it lies in one table.
    of_sweep = select(RunRow.id).join(PointRow, PointRow.id == RunRow.point_id).where(PointRow.sweep_id == row.sweep_id)
    here = (row.position, row.repeat)
    before = of_sweep.where(PointRow.position <= row.position, tuple_(*order) < here)
    after = of_sweep.where(PointRow.position >= row.position, tuple_(*order) > here)
    return Neighbours(
        previous=session.scalar(before.order_by(*(one.desc() for one in order)).limit(1)),
        next=session.scalar(after.order_by(*order).limit(1)),
    )
