"""Counts of what devices store, updated in the transaction of what is counted."""

from __future__ import annotations

from sqlalchemy import update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from powerlab.domain.run import Verdict
from powerlab.store.tables import DeviceTallyRow


def count_run(session: Session, device_id: str, run_id: str, verdict: Verdict) -> None:
    """Count a run that was added to the session; from now on it is the newest of its verdict."""
    session.flush()  # the tally refers to the run
    # In the database, not here: two sweeps of a device may store runs at the same time.
    insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    first = insert(DeviceTallyRow).values(
        device_id=device_id, verdict=verdict.value, run_count=1, sample_count=0, newest_run_id=run_id
    )
    more = {"run_count": DeviceTallyRow.run_count + 1, "newest_run_id": run_id}
    session.execute(first.on_conflict_do_update(index_elements=["device_id", "verdict"], set_=more))


def count_samples(session: Session, device_id: str, verdict: str, sample_count: int) -> None:
    """Count samples of a run that was counted before."""
    own = (DeviceTallyRow.device_id == device_id, DeviceTallyRow.verdict == verdict)
    session.execute(update(DeviceTallyRow).where(*own).values(sample_count=DeviceTallyRow.sample_count + sample_count))
