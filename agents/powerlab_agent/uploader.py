"""Upload of spooled results: only between runs, in the measuring thread, so that an upload never disturbs a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator

from powerlab.protocol.messages import ChunksUpload, Lease, RunUpload, TraceChunk
from powerlab_agent.client import STALE_LEASE, UNAUTHORISED, Client, RefusedError, ServerUnreachableError
from powerlab_agent.retry import Backoff
from powerlab_agent.room import SpoolUnwritableError
from powerlab_agent.spool import Spool, Spooled
from powerlab_agent.status import AgentState, Status

_log = logging.getLogger("powerlab.agent")
_TOGETHER_BYTES = 512 * 1024
"""Samples in one request: a usual run's at once, and not too much to send again where the line is cut."""


class LeaseLostError(Exception):
    """The job was given to somebody else; what is spooled for it stays on disk."""


class Uploader:
    """Empties the spool into the server."""

    def __init__(
        self,
        client: Client,
        spool: Spool,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        status: Status | None = None,
    ) -> None:
        self._client = client
        self._spool = spool
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._not_before_s = 0.0
        self._status = status or Status()

    def upload_if_due(self, lease: Lease) -> None:
        """Send everything, unless that failed a moment ago; a server that is away or a full disk is no error here."""
        if self._clock() < self._not_before_s:
            return
        try:
            self.upload_all(lease)
        except (ServerUnreachableError, SpoolUnwritableError) as error:
            _log.warning("what was measured waits on disk: %s", error)
            rest_s = error.rest_s if isinstance(error, ServerUnreachableError) else 0.0
            self._not_before_s = self._clock() + self._backoff.failed(rest_s)
        else:
            self._backoff.worked()

    def upload_all(self, lease: Lease | None) -> None:
        """Send every spooled run; each leaves the spool when the server has it whole.

        Args:
            lease: the job that is held now; runs of its sweep are sent under its token, others under their own.

        Raises:
            ServerUnreachableError: the server does not answer.
            LeaseLostError: the lease is over.
            RefusedError: the server does not know this agent.
            SpoolUnwritableError: what was sent cannot be noted; it will be sent again, which changes nothing.
        """
        while (spooled := self._spool.next()) is not None:
            held = lease is not None and lease.sweep_id == spooled.run.sweep_id
            token = lease.fencing_token if lease is not None and held else spooled.fencing_token
            try:
                with self._status.during(AgentState.UPLOADING):
                    self._send(spooled, token)
            except RefusedError as error:
                if error.status == UNAUTHORISED:
                    raise
                if held and error.kind == STALE_LEASE:
                    raise LeaseLostError(str(error)) from error
                _log.error("the server refuses the run %s, which stays on disk: %s", spooled.run.id, error)
                self._spool.set_aside(spooled.run.id, error.kind, str(error))
            else:
                self._spool.remove(spooled.run.id)

    def _send(self, spooled: Spooled, token: int) -> None:
        """Send a run and what of its traces the server does not have; what it has by then is not sent again."""
        run_id = spooled.run.id
        self._spool.begin(run_id)
        self._client.put_run(RunUpload(fencing_token=token, run=spooled.run))
        sent: list[int] = []
        try:
            for batch in self._batches(spooled.chunks):
                self._client.post_chunks(run_id, ChunksUpload(fencing_token=token, chunks=tuple(batch.values())))
                sent.extend(batch)
        except (ServerUnreachableError, RefusedError):
            self._spool.sent(sent)
            raise

    def _batches(self, numbers: Iterable[int]) -> Iterator[dict[int, TraceChunk]]:
        """Yield chunks by number, as many at a time as are sent together; a larger one goes alone."""
        batch: dict[int, TraceChunk] = {}
        size = 0
        for number in numbers:
            chunk = self._spool.chunk(number)
            if batch and size + len(chunk.payload_base64) > _TOGETHER_BYTES:
                yield batch
                batch, size = {}, 0
            batch[number] = chunk
            size += len(chunk.payload_base64)
        if batch:
            yield batch
