"""Puts a sweep that the command line measures into the local database, as an agent's upload would."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.sources.opening import default_store
from powerlab.sources.trace_store import open_trace_store

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from powerlab.store import Store

NO_STORE = "none"
_LEASE_S = 24 * 3600.0
"""Nobody else is given the sweep meanwhile; after a crash an agent of the same device may finish it."""


def new_default_store() -> Path:
    """Return where the local database lies, in a folder that is made where it is missing.

    Raises:
        PowerlabError: the folder cannot be made.
    """
    path = default_store()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PowerlabError(
            f"the local database cannot be kept in {path.parent} ({error.strerror}); set POWERLAB_STATE_DIR to a "
            "folder that can be written."
        ) from error
    return path


def open_local(address: str | None) -> Store | None:
    """Open the database that ``--database`` names; None for ``none``, and where none is named and none can be had.

    Raises:
        PowerlabError: it cannot be opened, or a database is named and the server extra is not installed.
    """
    if address == NO_STORE:
        return None
    if importlib.util.find_spec("sqlalchemy") is None:
        if address is None:
            return None
        raise PowerlabError(
            "a database needs the server extra: `pip install 'powerlab[server]'`, or give --database none."
        )
    from powerlab.store import open_store

    return open_store(address or new_default_store(), traces=open_trace_store())


@dataclass(slots=True, kw_only=True)
class StoredSweep:
    """A sweep in the database whose runs are added as they finish.

    Attributes:
        store: the open database.
        device_id: the device in that database.
        sweep_id: the sweep's identifier there.
        job_id: its job.
        fencing_token: proves that this process holds the job.
        broken: why nothing more is stored; None while all is well.
    """

    store: Store
    device_id: str
    sweep_id: str
    job_id: str
    fencing_token: int
    broken: str | None = None

    def add(self, run: Run, traces: tuple[Trace, ...]) -> None:
        """Store a run with its traces; a database that fails is reported once, and the sweep goes on without it."""
        from sqlalchemy.exc import SQLAlchemyError

        from powerlab.protocol.chunks import split
        from powerlab.protocol.messages import ChunkUpload, RunUpload
        from powerlab.store.writes.runs import store_chunk, store_run

        if self.broken is not None:
            return
        try:
            with self.store.write() as session:
                upload = RunUpload(fencing_token=self.fencing_token, run=run)
                store_run(session, self.device_id, upload, self.store.clock())
                session.flush()
                for trace in traces:
                    for chunk in split(trace):
                        held = ChunkUpload(fencing_token=self.fencing_token, chunk=chunk)
                        store_chunk(session, self.device_id, run.id, held)
        except (PowerlabError, SQLAlchemyError) as error:
            self._report(error)

    def finish(self, failure: str | None) -> None:
        """Say that the sweep is over, or why it failed."""
        from sqlalchemy.exc import SQLAlchemyError

        from powerlab.protocol.messages import Finish
        from powerlab.store.writes.jobs import finish

        if self.broken is None:
            message = Finish(
                fencing_token=self.fencing_token,
                state="done" if failure is None else "failed",
                detail=failure or "",
            )
            try:
                with self.store.write() as session:
                    finish(session, self.device_id, self.job_id, message, self.store.clock())
            except (PowerlabError, SQLAlchemyError) as error:
                self._report(error)
        self.store.close()

    def _report(self, error: Exception) -> None:
        """Say once that the database failed; SQLAlchemy's own text would repeat the whole statement."""
        self.broken = " ".join(str(getattr(error, "orig", None) or error).split()).rstrip(".")
        print(
            f"powerlab: the database {self.store.address} takes no more of this sweep ({self.broken}); "
            "the results file holds its runs.",
            file=sys.stderr,
        )


def begin(store: Store, device: Device, capabilities: Capabilities, plan: SweepPlan) -> StoredSweep:
    """Make the device known, and a sweep on it that this process holds, in one transaction.

    Raises:
        PowerlabError: the device cannot carry out the plan, or the database cannot be written.
    """
    from sqlalchemy.exc import DBAPIError

    try:
        return _begin(store, device, capabilities, plan)
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise PowerlabError(
            f"the database {store.address} cannot be written ({reason}); free some space, or give another --database."
        ) from error


def _begin(store: Store, device: Device, capabilities: Capabilities, plan: SweepPlan) -> StoredSweep:
    from powerlab.protocol.messages import SweepRequest
    from powerlab.store.writes.jobs import lease_sweep
    from powerlab.store.writes.sweeps import create_sweep

    with store.write() as session:
        now = store.clock()
        device_id = _device_id(session, store, device, capabilities)
        session.flush()
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=plan), now)
        session.flush()
        held = lease_sweep(session, sweep_id, now, _LEASE_S)
        return StoredSweep(
            store=store, device_id=device_id, sweep_id=sweep_id, job_id=held.job_id, fencing_token=held.fencing_token
        )


def go_on(store: Store, sweep_id: str, device: Device, capabilities: Capabilities, add: int) -> StoredSweep | None:
    """Add repeats to a sweep in the database and hold it, in one transaction; None where it is not there.

    Raises:
        PowerlabError: somebody else measures it, its device cannot, or the database cannot be written.
    """
    from sqlalchemy.exc import DBAPIError

    from powerlab.store.errors import NotFoundError
    from powerlab.store.reads.queries import sweep
    from powerlab.store.writes.audit import COMMAND_LINE
    from powerlab.store.writes.jobs import lease_sweep
    from powerlab.store.writes.repeats import add_repeats

    try:
        with store.write() as session:
            now = store.clock()
            try:
                record = sweep(session, sweep_id)
            except NotFoundError:
                return None
            _device_id(session, store, device, capabilities)
            session.flush()
            add_repeats(session, sweep_id, COMMAND_LINE, now, add=add)
            session.flush()
            held = lease_sweep(session, sweep_id, now, _LEASE_S)
            return StoredSweep(
                store=store,
                device_id=record.device_id,
                sweep_id=sweep_id,
                job_id=held.job_id,
                fencing_token=held.fencing_token,
            )
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise PowerlabError(
            f"the database {store.address} cannot be written ({reason}); free some space, or give another --database."
        ) from error


def _device_id(session: Session, store: Store, device: Device, capabilities: Capabilities) -> str:
    """Return the device of that name, with what it says about itself now; a new one is enrolled."""
    from powerlab.protocol.messages import Description, EnrolmentCodeRequest, EnrolRequest
    from powerlab.store.reads.queries import list_devices
    from powerlab.store.writes.devices import describe, enrol, make_enrolment_code

    now = store.clock()
    for known in list_devices(session):
        if known.device.name == device.name:
            describe(session, known.id, Description(device=device, capabilities=capabilities), now)
            return known.id
    code = make_enrolment_code(session, EnrolmentCodeRequest(), now).code
    session.flush()
    return enrol(session, EnrolRequest(code=code, device=device, capabilities=capabilities), now).device_id


def keep_layer_profile(store: Store, device: Device, capabilities: Capabilities, profile: LayerProfile) -> None:
    """Make the device known and store a layer profile of it, in one transaction.

    Raises:
        PowerlabError: the database cannot be written.
    """
    from sqlalchemy.exc import DBAPIError

    from powerlab.store.writes.layers import store_layer_profile

    try:
        with store.write() as session:
            device_id = _device_id(session, store, device, capabilities)
            session.flush()
            store_layer_profile(session, device_id, profile, store.clock())
    except DBAPIError as error:
        reason = " ".join(str(error.orig).split())
        raise PowerlabError(
            f"the database {store.address} cannot be written ({reason}); free some space, or give another --database."
        ) from error
