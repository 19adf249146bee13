"""Heartbeats that keep a job's lease while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType

from powerlab.protocol.messages import Backlog, Lease
from powerlab.protocol.records import SweepState
from powerlab_agent.client import Client, RefusedError, ServerUnreachableError
from powerlab_agent.retry import Backoff

_log = logging.getLogger("powerlab.agent")


class Heartbeat:
    """A thread that says "still here" every third of the lease, and calls ``on_end`` where measuring is to end.

    That is where the job was taken away, paused or cancelled. Of the last two the agent still has runs to hand in, so
    that it goes on holding the job. ``waits`` says what the device waits for, whenever the heart beats, and ``backlog``
    what waits to be uploaded.
    """

    def __init__(
        self,
        client: Client,
        lease: Lease,
        on_end: Callable[[], None],
        waits: Callable[[], str] = str,
        backlog: Callable[[], Backlog | None] = lambda: None,
    ) -> None:
        self._client = client
        self._lease = lease
        self._on_end = on_end
        self._waits = waits
        self._backoff = Backoff()
        self._backlog = backlog
        self._over = threading.Event()
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop and wait for the thread."""
        self._over.set()
        self._due.set()
        self._thread.join()

    def beat_now(self) -> None:
        """Say at once what else would be said with the next heartbeat."""
        self._due.set()

    def _beat(self) -> None:
        wait_s = self._lease.lease_s / 3
        while True:
            self._due.wait(wait_s)
            self._due.clear()
            if self._over.is_set():
                return
            wait_s = self._lease.lease_s / 3
            try:
                state = self._client.heartbeat(
                    self._lease.job_id, self._lease.fencing_token, self._waits(), self._backlog()
                )
            except ServerUnreachableError as error:
                # The fencing token, not the deadline, decides who may write: measuring goes on.
                _log.warning("no heartbeat: %s", error)
                if error.rest_s > 0:  # the lease goes on running out: as soon as it may be, as late as the server asks
                    wait_s = self._backoff.failed(error.rest_s)
            except RefusedError as error:
                _log.warning("the job was taken away: %s", error)
                self._on_end()
                return
            else:
                self._backoff.worked()
                if state is not SweepState.RUNNING:
                    self._on_end()
                    _log.info("the sweep was %s; it ends after the run in progress", state)
