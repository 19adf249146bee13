"""Short ways to put things into a store."""

from __future__ import annotations

from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, Lease, RunUpload
from powerlab.store import Store
from powerlab.store.writes.jobs import lease
from powerlab.store.writes.runs import store_chunk, store_run


def take(store: Store, device_id: str) -> Lease:
    with store.write() as session:
        held = lease(session, device_id, store.clock())
    assert held is not None
    return held


def upload(store: Store, device_id: str, held: Lease, run: Run) -> bool:
    with store.write() as session:
        return store_run(session, device_id, RunUpload(fencing_token=held.fencing_token, run=run), store.clock())


def upload_trace(
    store: Store, device_id: str, held: Lease, run_id: str, trace: Trace, *, max_samples: int = 300
) -> list[bool]:
    with store.write() as session:
        return [
            store_chunk(session, device_id, run_id, ChunkUpload(fencing_token=held.fencing_token, chunk=chunk))
            for chunk in split(trace, max_samples)
        ]
