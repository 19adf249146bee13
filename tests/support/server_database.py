"""A server's database with something in it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.store import Store, open_store
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, capabilities, device, make_trace, runs_of
from store_writing import take, upload, upload_trace


def add_device(store: Store, name: str) -> str:
    """Enrol a device and return its id."""
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        asked = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
        return enrol(session, asked, store.clock()).device_id


def fill(address: str, names: Sequence[str] = ("board-1", "board-2")) -> None:
    """Make a device that has stored five runs of a sweep and goes on, and others whose sweep waits."""
    with closing(open_store(address)) as store:
        ids = [add_device(store, name) for name in names]
        for one in ids:
            with store.write() as session:
                create_sweep(session, SweepRequest(device_id=one, plan=PLAN), store.clock())
        held = take(store, ids[0])
        for run in runs_of(held.sweep_id)[:5]:
            upload(store, ids[0], held, run)
            upload_trace(store, ids[0], held, run.id, make_trace())
