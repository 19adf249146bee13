"""A database with a device that holds a sweep, whose runs have no traces yet."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.power import Trace
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, Lease, SweepRequest
from powerlab.store import Store
from powerlab.store.traces.base import TraceStore
from powerlab.store.traces.parquet import ParquetTraceStore
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, capabilities, device, runs_of
from store_writing import take, upload, upload_trace


@dataclass
class Lab:
    """A store with a device that holds a sweep."""

    store: Store
    device_id: str
    held: Lease
    run_ids: list[str]

    @property
    def traces(self) -> TraceStore:
        return self.store.traces

    @property
    def files(self) -> ParquetTraceStore:
        assert isinstance(self.store.traces, ParquetTraceStore)
        return self.store.traces

    @property
    def keys(self) -> list[str]:
        """What lies in the files' folder, but for the note of whose it is."""
        return [found.key for found in self.files.objects.list() if "/" in found.key]

    def send(self, run: int, trace: Trace, max_samples: int = 300) -> list[bool]:
        return upload_trace(self.store, self.device_id, self.held, self.run_ids[run], trace, max_samples=max_samples)


def lab_with(store: Store, count: int = 3) -> Lab:
    """Enrol a device, give it a sweep, and upload the sweep's runs without their traces."""
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device("board-1"), capabilities=capabilities())
        device_id = enrol(session, request, store.clock()).device_id
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())
    held, runs = take(store, device_id), runs_of(sweep_id)[:count]
    for run in runs:
        upload(store, device_id, held, run)
    return Lab(store, device_id, held, [run.id for run in runs])
