"""What a sweep does now, for the strip on its page (``templates/sweep_now.html``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store.reads.fleet_status import fleet_status
from powerlab.store.reads.readings import last_readings
from powerlab_dashboards.pages.phases import PHASE_WORDS


def sweep_now(session: Session, record: SweepRecord, now: datetime) -> dict[str, Any]:
    """Return what the template needs; ``running`` is None where no agent carries the sweep out."""
    running = reading = None
    if record.state is SweepState.RUNNING:
        (member,) = fleet_status(session, now, device_id=record.device_id)
        running = member.running if member.running is not None and member.running.record.id == record.id else None
        reading = last_readings(session, now, [record.device_id]).get(record.device_id)
    return {"running": running, "reading": reading, "phase_words": PHASE_WORDS, "now": now}
