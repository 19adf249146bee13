"""Upload backlogs that agents report, written only when they change: most requests for a job have none."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Backlog
from powerlab.store.tables import DeviceBacklogRow

_LARGEST = 2**62
_SAME_S = 30.0
"""By how much a time may differ that two messages tell as an age, before it is another."""


def is_news(session: Session, device_id: str, backlog: Backlog | None, now: datetime) -> bool:
    """Say whether an agent's backlog is another than the one that is kept.

    Raises:
        PowerlabError: it holds a number that is none.
    """
    if backlog is None:
        return False
    said = _row_of(backlog, now)
    kept = session.get(DeviceBacklogRow, device_id)
    if kept is None:
        return True
    then, since = kept.oldest_since, said.pop("oldest_since")
    known = then is not None and since is not None
    moved = abs((then - since).total_seconds()) > _SAME_S if known else then is not since
    return moved or any(getattr(kept, name) != value for name, value in said.items())


def note(session: Session, device_id: str, backlog: Backlog | None, now: datetime) -> None:
    """Keep what an agent says, if it is news; raises as :func:`is_news`."""
    if backlog is None or not is_news(session, device_id, backlog, now):
        return
    # In the database, not here: a heartbeat and a lease request of one agent may come at the same time.
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    said = _row_of(backlog, now) | {"said_at": now}
    row = insert(DeviceBacklogRow).values(device_id=device_id, **said)
    session.execute(row.on_conflict_do_update(index_elements=["device_id"], set_=said))


def _row_of(backlog: Backlog, now: datetime) -> dict[str, Any]:
    counts = {
        "runs": backlog.runs,
        "refused_runs": backlog.refused_runs,
        "chunks": backlog.chunks,
        "size_bytes": backlog.size_bytes,
        "shed_runs": backlog.shed_runs,
    }
    age_s = backlog.oldest_age_s
    if not all(0 <= count <= _LARGEST for count in counts.values()):
        raise PowerlabError("a backlog holds counts from 0 on.")
    if age_s is not None and not (math.isfinite(age_s) and 0 <= age_s <= now.timestamp()):
        raise PowerlabError("the age of a backlog's oldest run is 0 or more seconds, and it is younger than 1970.")
    known = age_s is not None and backlog.runs > 0
    return {**counts, "oldest_since": now - timedelta(seconds=age_s) if age_s is not None and known else None}
