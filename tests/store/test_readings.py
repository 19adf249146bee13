"""Telemetry is kept for some minutes, within bounds, and told by device, on both databases."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from powerlab.domain.errors import PowerlabError
from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.protocol.readings import (
    ClockNow,
    DeviceReading,
    PhaseReport,
    RailPower,
    ReadingsUpload,
    Snapshot,
    TemperatureNow,
    TotalPower,
)
from powerlab.store import Store
from powerlab.store.errors import ForbiddenError
from powerlab.store.reads.readings import last_readings, live, phases, read_after
from powerlab.store.tables import DeviceReadingRow
from powerlab.store.writes import readings
from server_examples import Clock

SEEN = Snapshot(
    mode="15W",
    total=TotalPower(power_w=6.5, provenance=Provenance.MEASURED, scope="the module"),
    rails=(
        RailPower(rail="ina3221:VDD_IN", power_w=6.5, provenance=Provenance.MEASURED),
        RailPower(rail="rapl:package-0", provenance=Provenance.MEASURED, problem="denied: use sudo"),
    ),
    clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.4, limit_mhz=1510.4), ClockNow(name="GPU", clock_mhz=2000.0)),
    temperatures=(TemperatureNow(name="CPU-therm", celsius=51.5, limit_c=86.0),),
    load=(0.25, 1.0),
)


def say(store: Store, device_id: str, *ages_s: float, seen: Snapshot = SEEN, phase: PhaseReport | None = None) -> float:
    said = tuple(DeviceReading(age_s=age_s, seen=seen) for age_s in ages_s)
    with store.write() as session:
        upload = ReadingsUpload(readings=said, phase=phase)
        return readings.store_readings(session, device_id, upload, store.clock())


def test_readings_come_back_as_they_were_sent_at_the_servers_time(store: Store, device_id: str) -> None:
    say(store, device_id, 3.0, 1.0)
    with store.session() as session:
        record, last_id = live(session, device_id, store.clock() - timedelta(minutes=5))
        after = read_after(session, {device_id: last_id}, store.clock() - timedelta(minutes=5))
    assert [one.seen for one in record.readings] == [SEEN, SEEN]
    assert [(store.clock() - one.at).total_seconds() for one in record.readings] == [3.0, 1.0]
    assert record.phase is None
    assert after == {device_id: []}


def test_a_list_of_devices_tells_the_last_reading_and_power(store: Store, clock: Clock, device_id: str) -> None:
    say(store, device_id, 20.0, seen=replace(SEEN, total=replace(SEEN.total, power_w=None)))
    say(store, device_id, 0.0)
    with store.session() as session:
        (found,) = last_readings(session, store.clock()).values()
        assert last_readings(session, store.clock(), [str(uuid.uuid4())]) == {}
    assert (found.power_w, found.provenance) == (6.5, Provenance.MEASURED)
    assert (found.hottest_c, found.clock_mhz, found.mode, found.fresh) == (51.5, 1190.4, "15W", True)
    assert found.history == ((-20.0, None), (0.0, 6.5))
    clock.forward(31)
    with store.session() as session:
        assert not last_readings(session, store.clock())[device_id].fresh


def test_what_is_missing_is_missing_and_not_zero(store: Store, device_id: str) -> None:
    say(store, device_id, 0.0, seen=Snapshot(mode="current"))
    with store.session() as session:
        found = last_readings(session, store.clock())[device_id]
    assert (found.power_w, found.provenance, found.hottest_c, found.clock_mhz) == (None, None, None, None)


def test_readings_do_not_pile_up(store: Store, clock: Clock, device_id: str) -> None:
    say(store, device_id, 0.0)
    clock.forward(readings.KEPT.total_seconds() + 1)
    say(store, device_id, 0.0)
    with store.session() as session:
        assert session.scalar(select(func.count()).select_from(DeviceReadingRow)) == 1
    clock.forward(readings.KEPT.total_seconds() + 1)
    with store.write() as session:
        readings.forget_old(session, store.clock())
    with store.session() as session:
        assert session.scalar(select(func.count()).select_from(DeviceReadingRow)) == 0


def test_a_watched_device_is_asked_more_often_for_a_while(store: Store, clock: Clock, device_id: str) -> None:
    assert say(store, device_id, 0.0) == readings.PERIOD_S
    for _ in range(2):
        with store.write() as session:
            readings.note_watched(session, [device_id], store.clock())
    assert say(store, device_id, 0.0) == readings.WATCHED_PERIOD_S
    clock.forward(readings.WATCHED_FOR.total_seconds())
    assert say(store, device_id, 0.0) == readings.PERIOD_S


def test_the_phase_of_a_sweep_replaces_the_one_before(store: Store, device_id: str, sweep_id: str) -> None:
    report = PhaseReport(sweep_id=sweep_id, phase=RunPhase.WARM_UP, run_index=2, run_count=9)
    say(store, device_id, phase=report)
    say(store, device_id, phase=replace(report, phase=RunPhase.TIMED, left_s=12.5))
    with store.session() as session:
        found = phases(session)[device_id]
    assert (found.sweep_id, found.phase, found.run_index, found.run_count) == (sweep_id, RunPhase.TIMED, 2, 9)
    assert found.ends_at is not None
    assert (found.ends_at - found.since).total_seconds() == 12.5


def test_a_phase_is_one_of_the_devices_own_sweep(store: Store, device_id: str) -> None:
    with pytest.raises(ForbiddenError, match="not one of this device"):
        say(store, device_id, phase=PhaseReport(sweep_id=str(uuid.uuid4()), phase=RunPhase.TIMED))


@pytest.mark.parametrize(
    ("seen", "ages_s", "words"),
    [
        (SEEN, (-1.0,), "seconds old|s old"),
        (SEEN, (math.nan,), "s old"),
        (SEEN, (1e6,), "s old"),
        (SEEN, (0.0,) * 200, "120 readings at most"),
        (replace(SEEN, load=(math.inf,)), (0.0,), "not finite"),
        (replace(SEEN, clocks=(ClockNow(name="CPU", clock_mhz=1e12),)), (0.0,), "too large"),
        (replace(SEEN, rails=SEEN.rails * 100), (0.0,), "128 rails"),
        (replace(SEEN, load=(0.5,) * 5000), (0.0,), "2048 processors"),
        (replace(SEEN, mode="x" * 201), (0.0,), "characters"),
    ],
)
def test_a_reading_that_cannot_be_one_is_refused_whole(
    store: Store, device_id: str, seen: Snapshot, ages_s: tuple[float, ...], words: str
) -> None:
    with pytest.raises(PowerlabError, match=words):
        say(store, device_id, *ages_s, seen=seen)
    with store.session() as session:
        assert not last_readings(session, store.clock())
