"""Waiting lease requests: on the event loop, without a thread or connection each.

One look at the database serves all of them: it asks which devices have a job that may be given out. So a job is found
whoever made it (another server process, the command line, the end of a lease), on both kinds of database alike, and
what looking costs grows with the jobs that wait and not with the agents.
"""

from __future__ import annotations

import asyncio
import time

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from powerlab.store import Store
from powerlab.store.reads.queue import devices_with_jobs

LOOK_EVERY_S = 0.2
_LARGEST_SHARE = 0.1
"""Of the time that may go into looking, where a look takes long."""


class JobWatch:
    """One for each server process; used on its event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None

    async def wait(self, device_id: str, wait_s: float, gone: asyncio.Future[None]) -> bool:
        """Wait for a job for a device; False where none came in time, or ``gone`` is done.

        Somebody else may be given the job before the caller asks for it.

        Raises:
            SQLAlchemyError: the database failed.
        """
        found = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(device_id, set()).add(found)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await asyncio.wait((found, gone), timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ours = self._waiting[device_id]
            ours.discard(found)
            if not ours:
                del self._waiting[device_id]
        if found.done():
            found.result()
        return found.done() and not gone.done()

    async def _look(self) -> None:
        """Look now and then for as long as somebody waits."""
        pause_s = LOOK_EVERY_S
        while self._waiting:
            await asyncio.sleep(pause_s)
            began = time.monotonic()
            try:
                devices = await run_in_threadpool(self._devices)
            except SQLAlchemyError as error:
                self._tell(list(self._waiting), error)
                return
            self._tell([one for one in devices if one in self._waiting])
            pause_s = max(LOOK_EVERY_S, (time.monotonic() - began) * (1 / _LARGEST_SHARE - 1))

    def _devices(self) -> list[str]:
        with self._store.session() as session:
            return list(session.scalars(devices_with_jobs(self._store.clock())))

    def _tell(self, device_ids: list[str], error: Exception | None = None) -> None:
        for found in [one for device_id in device_ids for one in self._waiting[device_id]]:
            if found.done():
                continue
            if error is None:
                found.set_result(None)
            else:
                found.set_exception(error)
