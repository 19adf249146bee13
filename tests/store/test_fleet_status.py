"""Who counts as offline, busy or idle, how long a sweep still takes, and what failed in the last day."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from powerlab.protocol.fleet import Activity, FleetMember
from powerlab.protocol.messages import Finish, Lease
from powerlab.store import Store
from powerlab.store.reads.fleet_status import OFFLINE_AFTER_S, fleet_status
from powerlab.store.tables import JobRow
from powerlab.store.writes import jobs
from server_examples import Clock
from store_writing import take


@pytest.fixture
def lease(store: Store, device_id: str, sweep_id: str) -> Lease:
    return take(store, device_id)


def member(store: Store, device_id: str) -> FleetMember:
    """Return the only device."""
    with store.session() as session:
        (found,) = fleet_status(session, store.clock(), device_id=device_id)
        assert fleet_status(session, store.clock()) == (found,)
    return found


@pytest.mark.parametrize(
    ("silence_s", "activity"), [(OFFLINE_AFTER_S, Activity.IDLE), (OFFLINE_AFTER_S + 1, Activity.OFFLINE)]
)
def test_a_device_is_offline_some_minutes_after_its_last_contact(
    store: Store, clock: Clock, device_id: str, silence_s: float, activity: Activity
) -> None:
    clock.forward(silence_s)
    found = member(store, device_id)
    assert found.activity is activity
    assert found.running is None


def test_one_that_holds_a_job_is_busy_until_its_lease_and_its_last_contact_are_long_ago(
    store: Store, clock: Clock, device_id: str, lease: Lease
) -> None:
    found = member(store, device_id)
    assert found.activity is Activity.BUSY
    assert found.running is not None
    assert found.running.record.id == lease.sweep_id
    assert not found.running.silent
    with store.write() as session:  # as a device that reboots for its sweep says
        session.execute(update(JobRow).values(deadline=store.clock() + timedelta(minutes=30)))
    clock.forward(29 * 60)
    assert member(store, device_id).activity is Activity.BUSY
    clock.forward(2 * 60)
    silent = member(store, device_id)
    assert silent.activity is Activity.OFFLINE
    assert silent.running is not None
    assert silent.running.silent


def test_the_time_left_is_the_share_of_the_expected_time(store: Store, device_id: str, lease: Lease) -> None:
    with store.write() as session:
        session.execute(update(JobRow).values(expected_s=600.0))
    found = member(store, device_id).running
    assert found is not None
    assert found.left_s == 600.0 * (1 - found.record.stored_run_count / found.record.planned_run_count)
    with store.write() as session:
        session.execute(update(JobRow).values(expected_s=None))
    found = member(store, device_id).running
    assert found is not None
    assert found.left_s is None


def test_a_failed_sweep_counts_for_a_day(store: Store, clock: Clock, device_id: str, lease: Lease) -> None:
    with store.write() as session:
        message = Finish(fencing_token=lease.fencing_token, state="failed", detail="no such model")
        jobs.finish(session, device_id, lease.job_id, message, store.clock())
    assert member(store, device_id).failed_sweeps == 1
    clock.forward(24 * 3600 + 1)
    assert member(store, device_id).failed_sweeps == 0
