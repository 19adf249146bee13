"""Which devices, sweeps and runs a reader wants. None asks for all; ``after`` is the place of the last one seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVarTuple

from sqlalchemy import ColumnElement, Select, func, select, tuple_
from sqlalchemy.orm import aliased

from powerlab.domain.quantity import POWER_FIGURES, Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.selector import Selector
from powerlab.domain.workload import Scenario
from powerlab.protocol.records import SweepState
from powerlab.store.models import (
    DeviceRow,
    DeviceSnapshotRow,
    JobRow,
    PointRow,
    PowerModeRow,
    RunMetricRow,
    RunRow,
    SweepRow,
    WorkloadRow,
)
from powerlab.store.selection import conditions

_Rows = TypeVarTuple("_Rows")


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
            wanted = wanted.where(func.lower(DeviceRow.name).contains(self.name.lower(), autoescape=True))
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
    """Which sweeps; times are those of their creation, the first included and the second not."""

    device_id: str | None = None
    state: SweepState | None = None
    model: str | None = None
    submitter: str | None = None
    campaign_id: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None

    def narrow(self, wanted: Select[*_Rows]) -> Select[*_Rows]:
        """Narrow a query of sweeps."""
        if self.device_id is not None:
            wanted = wanted.where(SweepRow.device_id == self.device_id)
        if self.state is not None:
            wanted = wanted.where(SweepRow.id.in_(select(JobRow.sweep_id).where(JobRow.state == self.state.value)))
        if self.model is not None:
            own = select(PointRow.sweep_id).join(PointRow.workload).where(WorkloadRow.model == self.model)
            wanted = wanted.where(SweepRow.id.in_(own))
        if self.submitter is not None:
            wanted = wanted.where(SweepRow.submitter == self.submitter)
        if self.campaign_id is not None:
            wanted = wanted.where(SweepRow.campaign_id == self.campaign_id)
        return wanted.where(*_between(SweepRow.created_at, self.created_from, self.created_to))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs; ``provenance`` is that of their figures of power; ``after`` is a (received_at, id)."""

    sweep_id: str | None = None
    device_id: str | None = None
    model: str | None = None
    engine: str | None = None
    precision: str | None = None
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

    def narrow(self, wanted: Select[*_Rows]) -> Select[*_Rows]:
        """Narrow a query of runs with their points."""
        if self.sweep_id is not None:
            wanted = wanted.where(RunRow.sweep_id == self.sweep_id)
        if self.verdict is not None:
            wanted = wanted.where(RunRow.verdict == self.verdict.value)
        if self.provenance is not None:
            figure = aliased(RunMetricRow)
            of_power = (figure.name.in_(POWER_FIGURES), figure.provenance == self.provenance.value)
            wanted = wanted.where(select(figure).where(figure.run_id == RunRow.id, *of_power).exists())
        sweeps = tuple(self._of_sweep())
        if sweeps:
            wanted = wanted.where(RunRow.sweep_id.in_(select(SweepRow.id).join(SweepRow.snapshot).where(*sweeps)))
        wanted = wanted.where(*self._of_point(), *_between(RunRow.received_at, self.received_from, self.received_to))
        if self.after is not None:
            wanted = wanted.where(tuple_(RunRow.received_at, RunRow.id) > self.after)
        return wanted

    def _of_sweep(self) -> Iterator[ColumnElement[bool]]:
        if self.device_id is not None:
            yield SweepRow.device_id == self.device_id
        if self.simulated is not None:
            yield DeviceSnapshotRow.simulated == self.simulated

    def _of_point(self) -> Iterator[ColumnElement[bool]]:
        given = {
            WorkloadRow.model: self.model,
            WorkloadRow.engine: self.engine,
            WorkloadRow.precision: self.precision,
            WorkloadRow.batch_size: self.batch_size,
            WorkloadRow.scenario: None if self.scenario is None else self.scenario.value,
        }
        loads = [column == value for column, value in given.items() if value is not None]
        if loads:
            yield PointRow.workload_id.in_(select(WorkloadRow.id).where(*loads))
        if self.threads is not None:
            yield PointRow.threads == self.threads
        if self.mode is not None:
            yield PointRow.power_mode_id.in_(select(PowerModeRow.id).where(PowerModeRow.name == self.mode))


def _between(column: Any, start: datetime | None, end: datetime | None) -> Iterator[ColumnElement[bool]]:
    if start is not None:
        yield column >= start
    if end is not None:
        yield column < end
