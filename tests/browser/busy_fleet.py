"""A fleet in the middle of its work, for the pictures: what runs now, what fell silent, and a month of sweeps."""

from __future__ import annotations

import dataclasses
import math
from datetime import timedelta
from pathlib import Path

from sqlalchemy import update

from fresh_store import fresh_store
from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.protocol.bookings import BookingKind, BookingRequest
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
from powerlab.store.maintenance.summary_worker import sum_up
from powerlab.store.tables import DeviceRow, JobRow
from powerlab.store.writes import bookings
from powerlab.store.writes.readings import store_readings
from tests.browser.conftest import Site
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf

NOW = START + timedelta(minutes=25)
_DAYS = 16
_SLOWER_FROM, _SLOWER = 10, 0.94
_MODEL = "mobilenetv2"
_SILENT_S = 47 * 60


def busy_site(path: Path, url: str) -> Site:
    """Fill a new SQLite file with what the tests' site has and a fleet around it, as it is at ``NOW``."""
    shelf = Shelf(fresh_store(path, clock=lambda: NOW))
    _month(shelf)
    silent = _silent(shelf)
    site = Site(shelf, url)
    board = plausible.xavier("xavier-2")
    plan = plausible.plan(models=(_MODEL,))
    running = shelf.add_sweep(board, plan, stored=21)
    point = plan.points()[7]
    phase = PhaseReport(
        sweep_id=running.id, phase=RunPhase.TIMED, point=point, run_index=22, run_count=36, left_s=14.0
    )  # fmt: skip
    with shelf.store.write() as session:
        seen = update(DeviceRow)
        session.execute(seen.values(seen_at=NOW - timedelta(seconds=4)))
        session.execute(seen.where(DeviceRow.id == silent).values(seen_at=NOW - timedelta(seconds=_SILENT_S)))
        held = {"deadline": NOW + timedelta(seconds=40), "expected_s": 620.0}
        session.execute(update(JobRow).where(JobRow.sweep_id == running.id).values(**held))
        simulated = Provenance.SIMULATED
        for device_id, mode, mean_w, provenance, rails, said in (
            (site.device_id, "MODE_15W", 4.1, simulated, ("CPU", "GPU", "SOC"), None),
            (running.device_id, "MODE_15W", 9.3, simulated, ("CPU", "GPU", "SOC"), phase),
            (shelf.device_id("bench-1"), "current", 11.6, Provenance.MEASURED, ("package-0",), None),
            (shelf.device_id("no-sensors"), "current", None, Provenance.MEASURED, (), None),
        ):
            readings = tuple(_reading(age_s, mode, mean_w, provenance, rails) for age_s in range(290, -1, -10))
            store_readings(session, device_id, ReadingsUpload(readings=readings, phase=said), NOW)
        upgrade = BookingRequest(
            device_id=shelf.device_id("no-sensors"), kind=BookingKind.MAINTENANCE, reason="new fan",
            starts_at=NOW + timedelta(hours=18), ends_at=NOW + timedelta(hours=20),
        )  # fmt: skip
        bookings.book(session, upgrade, "ana", NOW)
    site.addresses |= {
        "trends": f"{url}/trends?model={_MODEL}",
        "sweep in progress": f"{url}/sweeps/{running.id}",
        "device busy": f"{url}/devices/{running.device_id}",
    }
    sum_up(shelf.store)
    return site


def _month(shelf: Shelf) -> None:
    """Store a sweep a day of one point, which has been slower since a day in the middle."""
    bench, plan = plausible.laptop("nightly-1"), plausible.plan(
        models=(_MODEL,), modes=("current",), threads=(2,), batch_sizes=(1,), repeats=5
    )  # fmt: skip
    for day in range(_DAYS):
        factor = _SLOWER if day >= _SLOWER_FROM else 1.0
        at = (START - timedelta(days=_DAYS - day)).isoformat()
        made = [_slowed(run, factor, at) for run in plausible.runs(bench, plan, "to be set", seed=day)]
        shelf.add_sweep(bench, plan, made=made)


def _slowed(run: Run, factor: float, at: str) -> Run:
    """Return the run at a speed and a time."""
    powers = {"throughput_img_per_s": 1, "efficiency_img_per_s_per_w": 1, "power_w": 0, "idle_power_w": 0}
    metrics = []
    for metric in run.metrics:
        by = factor ** powers.get(metric.name, -1)
        low, high = (None if bound is None else bound * by for bound in (metric.low, metric.high))
        metrics.append(dataclasses.replace(metric, value=metric.value * by, low=low, high=high))
    return dataclasses.replace(run, metrics=tuple(metrics), started_at=at)


def _silent(shelf: Shelf) -> str:
    """Store a sweep with a run that failed and one that was throttled; returns the id of its device."""
    plan = plausible.plan(models=("alexnet",), modes=("current",))
    bench = plausible.laptop("rack-7")
    made = plausible.runs(bench, plan, "to be set")
    made[0] = plausible.failed(made[0].point, "to be set")
    hot = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="x86_pkg_temp reached 98 °C")
    made[4] = dataclasses.replace(made[4], verdict=Verdict.FLAGGED, findings=(hot,))
    return shelf.add_sweep(bench, plan, made=made).device_id


def _reading(
    age_s: float, mode: str, mean_w: float | None, provenance: Provenance, rails: tuple[str, ...]
) -> DeviceReading:
    wave = 1 + 0.06 * math.sin(age_s / 21) + 0.03 * math.sin(age_s / 5)
    source = "rapl" if rails == ("package-0",) else "ina3221"
    share = (mean_w or 0.0) * wave / max(1, len(rails))
    return DeviceReading(
        age_s=age_s,
        seen=Snapshot(
            mode=mode,
            total=None
            if mean_w is None
            else TotalPower(power_w=mean_w * wave, provenance=provenance, scope="rails of the module"),
            rails=tuple(RailPower(rail=f"{source}:{rail}", power_w=share, provenance=provenance) for rail in rails),
            clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.0 + 40 * wave), ClockNow(name="GPU", clock_mhz=670.0)),
            temperatures=(
                TemperatureNow(name="CPU-therm", celsius=44.0 + 4 * wave, limit_c=86.0),
                TemperatureNow(name="GPU-therm", celsius=41.0 + 3 * wave, limit_c=88.0),
            ),
            load=(0.04, 0.02, 0.11, 0.03),
        ),
    )  # fmt: skip
