"""Which models were measured, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.store.tables import RunRow, WorkloadRow


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRuns:
    """The runs of a model.

    Attributes:
        model: as plans name it.
        run_count: of every verdict.
        newest_at: when the newest arrived, UTC.
    """

    model: str
    run_count: int
    newest_at: datetime


def model_runs(session: Session) -> list[ModelRuns]:
    """Return the models that have runs, in the order of their names.

    Each workload's runs are counted in the index that begins with it, however many runs there are.
    """
    of_workload = RunRow.workload_id == WorkloadRow.id
    wanted = select(
        WorkloadRow.model,
        select(func.count()).where(of_workload).scalar_subquery().label("run_count"),
        select(RunRow.received_at).where(of_workload).order_by(RunRow.received_at.desc()).limit(1).scalar_subquery(),
    )
    found: dict[str, ModelRuns] = {}
    for model, count, newest_at in session.execute(wanted.order_by(WorkloadRow.model)):
        if newest_at is None:
            continue
        known = found.get(model)
        found[model] = ModelRuns(
            model=model,
            run_count=count + (known.run_count if known else 0),
            newest_at=max(newest_at, known.newest_at) if known else newest_at,
        )
    return list(found.values())
