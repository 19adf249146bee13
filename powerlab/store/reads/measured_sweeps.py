"""Stored sweeps with their runs, for whoever chooses an operating point."""

from __future__ import annotations

from sqlalchemy.orm import Session

from powerlab.analysis.operating_point.devices import MeasuredSweep, check_run_count
from powerlab.analysis.searched import set_aside
from powerlab.protocol.records import SweepRecord
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.filters import RunFilter, SweepFilter


def sweep_measured(session: Session, sweep_id: str) -> MeasuredSweep:
    """Return one sweep with its runs.

    Raises:
        NotFoundError: there is no such sweep.
        PowerlabError: it has too many runs.
    """
    record = queries.sweep(session, sweep_id)
    check_run_count(record.stored_run_count, f"the sweep {sweep_id}")
    return _measured(session, record, None)


def sweeps_of_model(session: Session, model: str, device_id: str | None) -> tuple[MeasuredSweep, ...]:
    """Return the sweeps that have runs of a model, the newest first, with those runs.

    Args:
        session: nothing is written.
        model: as the plans name it.
        device_id: only this device's; None for all.

    Raises:
        NotFoundError: there is no such device, or there are no runs of the model.
        PowerlabError: there are too many.
    """
    if device_id is not None:
        queries.device(session, device_id)
    filters = SweepFilter(model=model, first_device_id=device_id)
    records = [record for record in queries.list_sweeps(session, filters) if record.stored_run_count]
    if not records:
        where = "" if device_id is None else " of that device"
        raise NotFoundError(
            f"there are no runs of the model {model!r}{where}; `GET /workloads` lists what was measured."
        )
    check_run_count(sum(record.stored_run_count for record in records), model)
    return tuple(_measured(session, record, model) for record in records)


def _measured(session: Session, record: SweepRecord, model: str | None) -> MeasuredSweep:
    filters = RunFilter(sweep_id=record.id, model=model)
    runs = tuple(run for _, run in queries.stream_runs(session, filters))
    return MeasuredSweep(
        sweep_id=record.id,
        device_id=record.device_id,
        device_name=record.device_name,
        simulated=record.simulated,
        runs=runs,
        aside=set_aside(runs, record.plan),
    )
