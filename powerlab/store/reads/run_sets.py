"""Sets of stored runs, as :mod:`powerlab.analysis.run_selection` names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.analysis.run_selection import DEVICE, Selection, selection
from powerlab.analysis.sets import RunSet
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.workload import Processor, Recompute, WorkloadKind
from powerlab.protocol.records import SweepRecord
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.filters import RunFilter, SweepFilter
from powerlab.store.reads.repeats import runs_of_sweeps
from powerlab.store.reads.run_rows import read_runs, run_rows
from powerlab.store.tables import CampaignRow, DeviceRow, DeviceSnapshotRow, RunRow, SweepRow

_E = TypeVar("_E", bound=StrEnum)

MOST_RUNS = 5000
"""Runs of one set, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSet:
    """Runs that belong together.

    Attributes:
        meant: what they were selected by.
        runs: the runs; their label is the word that was asked for.
        sweep: the sweep, where all runs of one are meant, or some of them.
    """

    meant: Selection
    runs: RunSet
    sweep: SweepRecord | None


def stored_set(session: Session, word: str) -> StoredSet:
    """Return the runs that a word means.

    Raises:
        NotFoundError: there is no such sweep or device.
        PowerlabError: there is no such key, no run fits, or too many do.
    """
    meant = selection(word)
    if meant.sweep or not meant.wanted:
        records = _sweeps(session, meant.sweep)
        _check(sum(record.stored_run_count for record in records), word)
        by_sweep = runs_of_sweeps(session, [record.id for record in records])
        runs = [run for record in records for run in by_sweep.get(record.id, ())]
        devices: Mapping[str, tuple[str, bool]] = {
            record.id: (record.device_name, record.simulated) for record in records
        }
        record = records[0] if len(records) == 1 else None
    else:
        runs, devices, record = *_all_that_fit(session, meant), None
    fitting = [run for run in runs if meant.fits(devices[run.sweep_id][0], run)]
    if not fitting:
        raise PowerlabError(meant.why_nothing([(devices[run.sweep_id][0], run) for run in runs]))
    return StoredSet(
        meant=meant,
        runs=RunSet(label=word, runs=tuple(fitting), devices=frozenset(devices[run.sweep_id] for run in fitting)),
        sweep=record,
    )


def _named(records: Iterable[SweepRecord]) -> Mapping[str, tuple[str, bool]]:
    return {record.id: (record.device_name, record.simulated) for record in records}


def _sweeps(session: Session, beginning: str) -> list[SweepRecord]:
    """Return the sweep whose id begins so, or the sweeps of such a campaign."""
    for column in (SweepRow.id, CampaignRow.id):
        found = session.scalars(
            select(column).where(column.startswith(beginning, autoescape=True)).order_by(column).limit(2)
        ).all()
        if len(found) > 1 and found[0] != beginning:
            raise PowerlabError(f"several sweeps begin with {beginning!r}; give more characters.")
        if found and beginning:
            if column is SweepRow.id:
                return [queries.sweep(session, found[0])]
            return queries.list_sweeps(session, SweepFilter(campaign_id=found[0]))
    raise NotFoundError(f"there is no sweep {beginning!r}; `powerlab sweep list` (GET /api/v1/sweeps) lists them.")


def _all_that_fit(session: Session, meant: Selection) -> tuple[list[Run], Mapping[str, tuple[str, bool]]]:
    """Return stored runs, all that fit among them, and of each of their sweeps the device."""
    chosen = meant.wanted
    filters = RunFilter(
        device_id=_device_id(session, chosen.get(DEVICE)),
        engine=chosen.get("engine"),
        precision=chosen.get("precision"),
        processor=_member(meant, "processor", Processor),
        workload=_member(meant, "workload", WorkloadKind),
        optimizer=chosen.get("optimizer"),
        recompute=_member(meant, "recompute", Recompute),
        batch_size=_number(meant, "batch"),
        threads=_number(meant, "threads"),
        mode=chosen.get("mode"),
    )
    _check(session.scalar(filters.narrow(session, select(func.count()).select_from(RunRow))) or 0, meant.word)
    wanted = filters.narrow(session, run_rows()).order_by(RunRow.received_at, RunRow.id)
    runs = [run for _, run in read_runs(session, wanted)]
    return runs, _devices(session, {run.sweep_id for run in runs})


def _number(meant: Selection, key: str) -> int | None:
    if key not in meant.wanted:
        return None
    try:
        return int(meant.wanted[key])
    except ValueError:
        raise PowerlabError(f"{meant.wanted[key]!r} is no number of {key}; give one, such as {key}=4.") from None


def _member(meant: Selection, key: str, kind: type[_E]) -> _E | None:
    name = meant.wanted.get(key)
    if name is not None and name not in list(kind):
        raise PowerlabError(f"{name!r} is no {key}; give one of: {', '.join(kind)}.")
    return None if name is None else kind(name)


def _device_id(session: Session, name: str | None) -> str | None:
    if name is None:
        return None
    found = session.scalar(select(DeviceRow.id).where(DeviceRow.name == name))
    if found is None:
        raise NotFoundError(f"there is no device {name!r}; `powerlab devices list` lists them.")
    return found


def _devices(session: Session, sweep_ids: Iterable[str]) -> Mapping[str, tuple[str, bool]]:
    wanted = (
        select(SweepRow.id, DeviceRow.name, DeviceSnapshotRow.simulated)
        .join(DeviceRow, DeviceRow.id == SweepRow.device_id)
        .join(DeviceSnapshotRow, DeviceSnapshotRow.id == SweepRow.snapshot_id)
        .where(SweepRow.id.in_(list(sweep_ids)))
    )
    return {sweep_id: (name, simulated) for sweep_id, name, simulated in session.execute(wanted)}


def _check(count: int, word: str) -> None:
    if count > MOST_RUNS:
        raise PowerlabError(
            f"{word} means {count} runs, and a set has {MOST_RUNS} at most; select fewer of them, such as one sweep or "
            "one mode."
        )
