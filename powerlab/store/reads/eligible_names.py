"""Names of the devices that may claim a multi-device sweep; apart, because ``queries`` needs them, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.store.tables import DeviceRow, SweepCandidateRow

_IDS = 500
"""Identifiers in one query."""


def eligible_device_names(session: Session, sweep_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the sorted names of the eligible devices by sweep; omits sweeps that have their device."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for start in range(0, len(sweep_ids), _IDS):
        wanted = (
            select(SweepCandidateRow.sweep_id, DeviceRow.name)
            .join(DeviceRow, DeviceRow.id == SweepCandidateRow.device_id)
            .where(SweepCandidateRow.sweep_id.in_(sweep_ids[start : start + _IDS]))
        )
        for sweep_id, name in session.execute(wanted):
            names[sweep_id].append(name)
    return {sweep_id: sorted(found) for sweep_id, found in names.items()}
