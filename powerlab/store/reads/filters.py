"""Filters of devices, sweeps and runs. None means all; ``after`` is the position of the last item seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVarTuple

from sqlalchemy import ColumnElement, Select, false, func, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session

from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.selector import Selector
from powerlab.domain.workload import Processor, Recompute, Scenario, WorkloadKind
from powerlab.protocol.records import SweepState
from powerlab.store.reads.clusters import sweeps_with_others
from powerlab.store.reads.selection import conditions
from powerlab.store.tables import (
    DeviceRow,
    DeviceSnapshotRow,
    JobRow,
    PointRow,
    RunRow,
    SweepRow,
    WorkloadRow,
)

_Rows = TypeVarTuple("_Rows")


def _contains(column: InstrumentedAttribute[str], text: str) -> ColumnElement[bool]:
    """Whether a text is in a column, in capitals or not."""
    return func.lower(column).contains(text.lower(), autoescape=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFilter:
    """Which devices; ``name`` is a part of the name, in capitals or not; ``after`` is a (name, id).

    All of ``selectors`` hold, none of which names a group.
    """

    name: str | None = None
    board: str | None = None
    simulated: bool | None = None
    seen_since: datetime | None = None
    selectors: tuple[Selector, ...] = ()
    limit: int | None = None
    after: tuple[str, str] | None = None

    def narrow(self, wanted: Select[*_Rows]) -> Select[*_Rows]:
        """Narrow a query of devices with their newest snapshots."""
        if self.name is not None:
            wanted = wanted.where(_contains(DeviceRow.name, self.name))
        if self.board is not None:
            wanted = wanted.where(DeviceSnapshotRow.document["device"]["board"].as_string() == self.board)
        if self.simulated is not None:
            wanted = wanted.where(DeviceSnapshotRow.simulated == self.simulated)
        if self.seen_since is not None:
            wanted = wanted.where(DeviceRow.seen_at >= self.seen_since)
        for selector in self.selectors:
            wanted = wanted.where(*conditions(selector))
        if self.after is not None:
            wanted = wanted.where(tuple_(DeviceRow.name, DeviceRow.id) > self.after)
        return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepFilter:
    """Which sweeps; times are those of their creation, the first included and the second not.

    ``text`` is a part of a model's, a device's or the submitter's name, in capitals or not. ``device_id`` is a device
    that carries them out, by itself or with others; ``first_device_id`` the one that runs are stored under.
    """

    text: str | None = None
    device_id: str | None = None
    first_device_id: str | None = None
    state: SweepState | None = None
    model: str | None = None
    submitter: str | None = None
    campaign_id: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None

    def narrow(self, session: Session, wanted: Select[*_Rows]) -> Select[*_Rows]:
        """Narrow a query of sweeps.

        Which workloads a model has is looked up first, as for runs, and which sweeps a device carries out with others.
        """
        if self.text is not None:
            wanted = wanted.where(self._names(session, self.text))
        if self.device_id is not None:
            others = sweeps_with_others(session, self.device_id)
            wanted = wanted.where(or_(SweepRow.device_id == self.device_id, SweepRow.id.in_(others)))
        if self.first_device_id is not None:
            wanted = wanted.where(SweepRow.device_id == self.first_device_id)
        if self.state is not None:
            wanted = wanted.where(SweepRow.id.in_(select(JobRow.sweep_id).where(JobRow.state == self.state.value)))
        if self.model is not None:
            loads = session.scalars(select(WorkloadRow.id).where(WorkloadRow.model == self.model)).all()
            wanted = wanted.where(SweepRow.id.in_(select(PointRow.sweep_id).where(PointRow.workload_id.in_(loads))))
        if self.submitter is not None:
            wanted = wanted.where(SweepRow.submitter == self.submitter)
        if self.campaign_id is not None:
            wanted = wanted.where(SweepRow.campaign_id == self.campaign_id)
        return wanted.where(*between(SweepRow.created_at, self.created_from, self.created_to))

    @staticmethod
    def _names(session: Session, text: str) -> ColumnElement[bool]:
        loads = session.scalars(select(WorkloadRow.id).where(_contains(WorkloadRow.model, text))).all()
        # Asked of each sweep by itself: the sweeps of a common model, as one list, would be searched for every sweep.
        has_one = select(PointRow.id).where(PointRow.sweep_id == SweepRow.id, PointRow.workload_id.in_(loads)).exists()
        return or_(_contains(DeviceRow.name, text), _contains(SweepRow.submitter, text), has_one)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; ``provenance`` is that of their figures of power; ``after`` is a (received_at, id)."""

    sweep_id: str | None = None
    device_id: str | None = None
    model: str | None = None
    engine: str | None = None
    precision: str | None = None
    processor: Processor | None = None
    workload: WorkloadKind | None = None
    optimizer: str | None = None
    recompute: Recompute | None = None
    batch_size: int | None = None
    scenario: Scenario | None = None
    threads: int | None = None
    mode: str | None = None
    verdict: Verdict | None = None
    provenance: Provenance | None = None
    simulated: bool | None = None
    received_from: datetime | None = None
    received_to: datetime | None = None
    limit: int | None = None
    after: tuple[datetime, str] | None = None

    def narrow(self, session: Session, wanted: Select[*_Rows]) -> Select[*_Rows]:
        """Narrow a query of runs.

        Every filters but that for a workload is a column of the run; which workloads are meant is looked up here, for
        the planner knows how many runs a workload has, and nothing of the answers of another query.
        """
        given = {
            RunRow.sweep_id: self.sweep_id,
            RunRow.device_id: self.device_id,
            RunRow.threads: self.threads,
            RunRow.mode: self.mode,
            RunRow.verdict: self.verdict and self.verdict.value,
            RunRow.power_provenance: self.provenance and self.provenance.value,
            RunRow.simulated: self.simulated,
        }
        wanted = wanted.where(*(column == value for column, value in given.items() if value is not None))
        wanted = wanted.where(*self._of_workload(session), *between(RunRow.received_at, *self.times()))
        if self.after is not None:
            wanted = wanted.where(tuple_(RunRow.received_at, RunRow.id) > self.after)
        return wanted

    def times(self) -> tuple[datetime | None, datetime | None]:
        """Return the first and last time of arrival: what comes after a place is not earlier than the place."""
        starts = [one for one in (self.received_from, self.after and self.after[0]) if one is not None]
        return max(starts, default=None), self.received_to

    def _of_workload(self, session: Session) -> Iterator[ColumnElement[bool]]:
        given = {
            WorkloadRow.model: self.model,
            WorkloadRow.engine: self.engine,
            WorkloadRow.precision: self.precision,
            WorkloadRow.processor: self.processor and self.processor.value,
            WorkloadRow.kind: self.workload and self.workload.value,
            WorkloadRow.optimizer: self.optimizer,
            WorkloadRow.recompute: self.recompute and self.recompute.value,
            WorkloadRow.batch_size: self.batch_size,
            WorkloadRow.scenario: self.scenario and self.scenario.value,
        }
        loads = [column == value for column, value in given.items() if value is not None]
        if not loads:
            return
        found = session.scalars(select(WorkloadRow.id).where(*loads)).all()
        yield RunRow.workload_id.in_(found)
        # What is found may have come late: with the time of the first of them, all that came before is passed over.
        first = select(func.min(RunRow.received_at)).where(
            RunRow.workload_id == WorkloadRow.id, *between(RunRow.received_at, *self.times())
        )
        firsts = select(first.correlate(WorkloadRow).scalar_subquery().label("first")).where(WorkloadRow.id.in_(found))
        earliest = session.scalar(select(func.min(firsts.subquery().c.first)))
        yield false() if earliest is None else RunRow.received_at >= earliest


def between(column: Any, start: datetime | None, end: datetime | None) -> Iterator[ColumnElement[bool]]:
    """Yield what is true of times from ``start`` on and before ``end``."""
    if start is not None:
        yield column >= start
    if end is not None:
        yield column < end
