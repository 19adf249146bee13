"""Series of a model's figures: what can be asked for, read once while nothing new arrives, the newest change first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.analysis.best import GOALS
from powerlab.analysis.gate.samples import model_name
from powerlab.analysis.trends.trends import Change, Trend
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.trends import read_trends
from powerlab.store.tables import DeviceTallyRow

SWEEPS = 100
"""Sweeps that are looked at, the newest."""
_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A model, and which devices measured it in how many of the newest sweeps."""

    model: str
    devices: tuple[tuple[str, str], ...]
    sweep_count: int


def measured_models(session: Session) -> tuple[Measured, ...]:
    """Return the models of the newest sweeps with runs, the one with the most sweeps first; devices are (id, name)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for record in queries.list_sweeps(session, limit=SWEEPS):
        if record.stored_run_count:
            for model in {model_name(word) for word in record.plan.models}:
                found.setdefault(model, []).append((record.device_id, record.device_name))
    models = (
        Measured(model=model, devices=tuple(sorted(set(devices), key=lambda one: one[1])), sweep_count=len(devices))
        for model, devices in found.items()
    )
    return tuple(sorted(models, key=lambda one: (-one.sweep_count, one.model)))


class TrendReader:
    """Reads the series of a model, and keeps the last few answers until a run arrives: a page and its chart ask alike.

    Attributes:
        store: where the sweeps are.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._kept: OrderedDict[tuple[str, str, int], tuple[Trend, ...]] = OrderedDict()

    def series(self, session: Session, model: str, device_id: str) -> tuple[Trend, ...]:
        """Return the series of a model on a device, or on all where the id is empty, the newest change first.

        Raises:
            NotFoundError: there is no such device.
        """
        stored = session.scalar(select(func.sum(DeviceTallyRow.run_count))) or 0
        key = (model, device_id, int(stored))
        found = self._kept.pop(key, None)
        if found is None:
            read = read_trends(session, model, list(GOALS.values()), device_id=device_id or None, most=SWEEPS)
            found = tuple(sorted(read, key=_newest, reverse=True))
        self._kept[key] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


def name_of(trend: Trend) -> str:
    """Return what names a series in an address."""
    return f"{trend.device}~{trend.point.id}~{trend.metric}~{trend.provenance.value}"


def newest_change(trend: Trend) -> tuple[str, Change] | None:
    """Return the last change and when the first sweep after it was; None where there is none."""
    if not trend.changes:
        return None
    change = trend.changes[-1]
    at = next(one.started_at for one in trend.values if one.sweep_id == change.first_after)
    return at, change


def chosen_series(series: Sequence[Trend], name: str) -> Trend | None:
    """Return the series of that name, else the first; None where there is none."""
    return next((one for one in series if name_of(one) == name), series[0] if series else None)


def _newest(trend: Trend) -> tuple[str, int]:
    found = newest_change(trend)
    return found[0] if found is not None else "", len(trend.values)
