"""What readers ask of the store. Everything comes back as domain words and records, never as database rows."""

from __future__ import annotations

from sqlalchemy.orm import Session

from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.protocol.records import DeviceRecord, SweepRecord


def list_devices(session: Session) -> list[DeviceRecord]:
    """Return every device, in the order of their names."""
    raise NotImplementedError


def device(session: Session, device_id: str) -> DeviceRecord:
    """Return one device; raises NotFoundError."""
    raise NotImplementedError


def list_sweeps(session: Session, *, limit: int | None = None) -> list[SweepRecord]:
    """Return the sweeps, newest first."""
    raise NotImplementedError


def sweep(session: Session, sweep_id: str) -> SweepRecord:
    """Return one sweep; raises NotFoundError."""
    raise NotImplementedError


def runs_of_sweep(session: Session, sweep_id: str) -> list[Run]:
    """Return a sweep's runs in plan order, repeats of a point in their order; raises NotFoundError."""
    raise NotImplementedError


def run(session: Session, run_id: str) -> Run:
    """Return one run; raises NotFoundError."""
    raise NotImplementedError


def traces_of_run(session: Session, run_id: str) -> list[Trace]:
    """Return a run's traces, one a rail, whole; raises NotFoundError where there is no such run."""
    raise NotImplementedError
