"""A real store, filled the way an agent fills it: enrol, lease, upload, finish."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from fresh_store import fresh_store
from powerlab.domain.layers import LayerProfile
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import (
    ChunksUpload,
    EnrolmentCodeRequest,
    EnrolRequest,
    Finish,
    Lease,
    RunUpload,
    SweepRequest,
    TraceChunk,
)
from powerlab.store import Store
from powerlab.store.writes import devices, jobs, runs, sweeps
from powerlab.store.writes.layers import store_layer_profile
from powerlab_dashboards.router import create_router
from recorded_run import POINT, recorded_run
from store_writing import upload, upload_trace
from tests.dashboards import plausible

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shelved:
    """A sweep in the store, with all its runs, stored already or not."""

    id: str
    runs: tuple[Run, ...]
    bench: plausible.Bench
    device_id: str
    lease: Lease


class Shelf:
    """A store and the shortest way to fill it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._devices: dict[str, str] = {}
        self._sweep_count = 0

    def add_sweep(
        self,
        bench: plausible.Bench,
        plan: SweepPlan,
        *,
        made: Sequence[Run] | None = None,
        stored: int | None = None,
        seed: int = 1,
    ) -> Shelved:
        """Store a sweep with its runs (``made``, or plausible ones) and traces, and finish it.

        With ``stored`` only so many runs are stored and the sweep is left running. The same first sweep of a store is
        stored once, and then copied with its store: many tests begin with one, and storing it takes half a second.
        """
        key = None if made is not None or self._sweep_count else (bench, plan, stored, seed)
        if key in _first:
            content, sweep = _first[key]
            self.store.engine.dispose()
            Path(self.store.address).write_bytes(content)
            self._sweep_count, self._devices = 1, {bench.device.name: sweep.device_id}
            return sweep
        sweep = self._add_sweep(bench, plan, made, stored, seed)
        if key is not None:
            self.store.engine.dispose()  # SQLite moves what was written into the file when the last one closes it
            _first[key] = Path(self.store.address).read_bytes(), sweep
        return sweep

    def _add_sweep(
        self, bench: plausible.Bench, plan: SweepPlan, made: Sequence[Run] | None, stored: int | None, seed: int
    ) -> Shelved:
        self._sweep_count += 1
        now = START + timedelta(minutes=self._sweep_count)
        device_id = self._device(bench, now)
        with self.store.write() as session:
            sweep_id = sweeps.create_sweep(session, SweepRequest(device_id=device_id, plan=plan), now)
        with self.store.write() as session:
            lease = jobs.lease(session, device_id, now)
        assert lease is not None
        assert lease.sweep_id == sweep_id
        sweep = Shelved(
            id=sweep_id,
            runs=tuple(
                dataclasses.replace(run, sweep_id=sweep_id, id=plausible.run_id(sweep_id, run.point, run.repeat))
                for run in made or plausible.runs(bench, plan, sweep_id, seed)
            ),
            bench=bench,
            device_id=device_id,
            lease=lease,
        )
        self._upload(sweep, sweep.runs[:stored])
        if stored is None:
            self.end(sweep)
        return sweep

    def add_layers(self, device_id: str, *profiles: LayerProfile) -> None:
        """Store layer profiles of a device."""
        with self.store.write() as session:
            for profile in profiles:
                store_layer_profile(session, device_id, profile, START)

    def upload(self, sweep: Shelved, count: int) -> None:
        """Store the first runs of a sweep, as far as it lacks them."""
        self._upload(sweep, sweep.runs[:count])

    def finish(self, sweep: Shelved) -> None:
        """Store the runs that a sweep lacks, and finish it."""
        self._upload(sweep, sweep.runs)
        self.end(sweep)

    def end(self, sweep: Shelved) -> None:
        """Say that a sweep is done, whatever is stored of it."""
        message = Finish(fencing_token=sweep.lease.fencing_token, state="done")
        with self.store.write() as session:
            jobs.finish(session, sweep.device_id, sweep.lease.job_id, message, START)

    def _upload(self, sweep: Shelved, made: Sequence[Run]) -> None:
        token = sweep.lease.fencing_token
        with self.store.write() as session:
            for run in made:
                new = runs.store_run(session, sweep.device_id, RunUpload(fencing_token=token, run=run), START)
                if not new or not run.metrics:
                    continue
                session.flush()
                upload = ChunksUpload(fencing_token=token, chunks=_chunks(sweep.bench, run))
                runs.store_chunks(session, sweep.device_id, run.id, upload)

    def device_id(self, name: str) -> str:
        """Return the identifier of a device that has a sweep."""
        return self._devices[name]

    def _device(self, bench: plausible.Bench, now: datetime) -> str:
        name = bench.device.name
        if name not in self._devices:
            with self.store.write() as session:
                code = devices.make_enrolment_code(session, EnrolmentCodeRequest(), now).code
                request = EnrolRequest(code=code, device=bench.device, capabilities=bench.capabilities)
                self._devices[name] = devices.enrol(session, request, now).device_id
        return self._devices[name]


_first: dict[object, tuple[bytes, Shelved]] = {}
_sent: dict[tuple[plausible.Bench, Point, tuple[int, int]], tuple[TraceChunk, ...]] = {}


def _chunks(bench: plausible.Bench, run: Run) -> tuple[TraceChunk, ...]:
    """Return the traces of a run as an agent sends them; repeats, and other tests, have the same ones."""
    key = bench, run.point, run.window_ns
    if key not in _sent:
        _sent[key] = tuple(chunk for trace in plausible.traces(bench, run) for chunk in split(trace))
    return _sent[key]


def add_recorded_run(shelf: Shelf, **changes: object) -> Run:
    """Store a run whose figures follow from its record, with other things in it where they are named."""
    plan = plausible.plan(models=(POINT.workload.model,), batch_sizes=(4,), threads=(2,), modes=("current",))
    sweep = shelf.add_sweep(plausible.laptop(), plan, stored=0)
    recorded = recorded_run(sweep_id=sweep.id)
    run = dataclasses.replace(recorded.run, **changes)  # type: ignore[arg-type]
    upload(shelf.store, sweep.device_id, sweep.lease, run)
    for trace in recorded.traces:
        upload_trace(shelf.store, sweep.device_id, sweep.lease, run.id, trace)
    shelf.end(sweep)  # or the next sweep of this device finds it still running
    return run


def open_shelf(path: Path) -> Shelf:
    """Return an empty shelf in a new SQLite file."""
    return Shelf(fresh_store(path, clock=lambda: START))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """Return an empty store."""
    opened = open_shelf(tmp_path / "powerlab.db")
    yield opened
    opened.store.close()


def client_of(shelf: Shelf) -> TestClient:
    """Return a client of the dashboard over a shelf."""
    app = FastAPI(openapi_url=None)
    app.include_router(create_router(shelf.store))
    return TestClient(app)


@pytest.fixture
def client(shelf: Shelf) -> Iterator[TestClient]:
    """Return a client of the dashboard over the test's own store."""
    with client_of(shelf) as opened:
        yield opened
