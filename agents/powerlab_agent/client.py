"""HTTP client for the server's agent API: one method per message."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import urllib3
from urllib3.connection import HTTPConnection

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import (
    Backlog,
    Beat,
    ChunksUpload,
    Description,
    EnrolReply,
    EnrolRequest,
    Fence,
    Finish,
    JobStanding,
    Lease,
    LeaseReply,
    LeaseRequest,
    Meeting,
    Problem,
    RebootNotice,
    RunUpload,
    ServerTime,
    Stored,
)
from powerlab.protocol.model_records import ModelRecord
from powerlab.protocol.readings import ReadingsReply, ReadingsUpload
from powerlab.protocol.records import DeviceRecord, SweepState
from powerlab.protocol.wire import decode, encode
from powerlab_agent.contact import Contact, WatchedPool

T = TypeVar("T")
STALE_LEASE = "stale-lease"
CONFLICT = "conflict"
UNAUTHORISED = 401
_CONNECT_S = 5.0
_READ_S = 30.0
_BLOCK_BYTES = 1 << 18
_UNSENT_BYTES = 1 << 16
"""What may wait in the kernel to be sent. Waiting for an answer begins when all of it is there, and a slow line takes
its time with it: with buffers of megabytes, as Linux makes them, 512 KiB would never arrive over less than 17 kB/s."""


class ServerUnreachableError(Exception):
    """No answer, or one that says "later" (5xx, 429): trying again may help.

    Attributes:
        rest_s: for how many seconds the server wants to be left alone; 0 where it did not say.
    """

    def __init__(self, detail: str, rest_s: float = 0.0) -> None:
        super().__init__(detail)
        self.rest_s = rest_s


class RefusedError(PowerlabError):
    """The server understood and said no; trying again will not help.

    Attributes:
        kind: the last part of the problem's type, for example ``stale-lease``.
        status: the HTTP status.
    """

    def __init__(self, detail: str, kind: str, status: int) -> None:
        super().__init__(detail)
        self.kind = kind
        self.status = status


class Client:
    """Speaks to one server; may be used by several threads.

    Attributes:
        contact: whether the server answers, and until when it wants to be left alone.
    """

    def __init__(self, server: str, token: str | None = None, read_s: float = _READ_S) -> None:
        """Prepare; nothing is asked yet.

        Args:
            server: its address.
            token: whose device this is; only enrolling needs none.
            read_s: how long the server may say nothing before it counts as away, in seconds.
        """
        if not server.startswith(("http://", "https://")):
            raise PowerlabError(f"{server!r} is not a server address; write http://host:port.")
        self._base = f"{server.rstrip('/')}/api/v1"
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._read_s = read_s
        self.contact = Contact()
        options = [*HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_SNDBUF, _UNSENT_BYTES)]
        self._pool = WatchedPool(self.contact, retries=False, maxsize=2, socket_options=options)

    def enrol(self, message: EnrolRequest) -> EnrolReply:
        """Turn a code into an identity."""
        return self._ask("POST", "/agents", message, EnrolReply)

    def who_am_i(self) -> DeviceRecord:
        """Ask what the server knows of this agent's device."""
        return self._ask("GET", "/agents/me", None, DeviceRecord)

    def describe(self, message: Description) -> None:
        """Say what the device is and can do."""
        self._send("PUT", "/agents/me", message)

    def time(self) -> ServerTime:
        """Ask for the server's clock."""
        return self._ask("GET", "/time", None, ServerTime)

    def lease(self, wait_s: float, backlog: Backlog | None = None) -> Lease | None:
        """Ask for a job, and say what waits here to be uploaded."""
        message = LeaseRequest(wait_s=wait_s, backlog=backlog)
        return self._ask("POST", "/jobs/lease", message, LeaseReply, wait_s).lease

    def heartbeat(self, job_id: str, fencing_token: int, waits: str = "", backlog: Backlog | None = None) -> SweepState:
        """Hold a job, and say what the device waits for and what waits here; returns where the job stands.

        It may have been paused or cancelled.
        """
        beat = Beat(fencing_token=fencing_token, waits=waits, backlog=backlog)
        return self._ask("POST", f"/jobs/{job_id}/heartbeat", beat, JobStanding).state

    def send_readings(self, message: ReadingsUpload) -> ReadingsReply:
        """Send what the device reads now and what its sweep does; returns how often that is wanted."""
        return self._ask("POST", "/agents/me/readings", message, ReadingsReply)

    def announce_reboot(self, job_id: str, notice: RebootNotice) -> SweepState:
        """Say that the device reboots for a job; returns where that stands, as :meth:`heartbeat` does."""
        return self._ask("POST", f"/jobs/{job_id}/reboot", notice, JobStanding).state

    def release(self, job_id: str, fencing_token: int) -> SweepState:
        """Give a job back; returns what became of it."""
        fence = Fence(fencing_token=fencing_token)
        return self._ask("POST", f"/jobs/{job_id}/release", fence, JobStanding).state

    def finish(self, job_id: str, message: Finish) -> None:
        """End a job."""
        self._send("POST", f"/jobs/{job_id}/finish", message)

    def tell_meeting(self, job_id: str, message: Meeting) -> None:
        """Say where the other devices of a cluster are waited for."""
        self._send("POST", f"/jobs/{job_id}/meeting", message)

    def own_address(self) -> str:
        """Return the address of this device on the way to the server.

        Raises:
            ServerUnreachableError: there is no way.
        """
        address = urllib3.util.parse_url(self._base)
        family = socket.AF_INET6 if ":" in (address.host or "") else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect(((address.host or "").strip("[]"), address.port or 80))  # sends nothing
                return str(way.getsockname()[0])
        except OSError as error:
            raise ServerUnreachableError(f"there is no way to {self._base} ({error})") from error

    def put_run(self, message: RunUpload) -> Stored:
        """Upload a run."""
        return self._ask("PUT", f"/runs/{message.run.id}", message, Stored)

    def post_chunks(self, run_id: str, message: ChunksUpload) -> Stored:
        """Upload chunks of a run's traces."""
        return self._ask("POST", f"/runs/{run_id}/traces/chunks", message, Stored)

    def _ask(self, method: str, path: str, message: object, kind: type[T], wait_s: float = 0.0) -> T:
        """Send a message and return the answer; raises as :meth:`_send`, and where the answer is something else."""
        data = self._send(method, path, message, wait_s)
        try:
            return decode(data, kind)
        except PowerlabError as error:
            raise ServerUnreachableError(
                f"{self._base}{path} answers, but not like a powerlab server ({error})"
            ) from error

    def model(self, sha256: str) -> ModelRecord:
        """Ask for a model's size."""
        return self._ask("GET", f"/models/{sha256}", None, ModelRecord)

    def model_content(self, sha256: str, start: int) -> tuple[int, Iterator[bytes]]:
        """Return a model's bytes from ``start`` on, block by block, and where they really begin: there, or at 0.

        Raises:
            ServerUnreachableError: no answer now; the iterator raises it too, where the connection is cut.
            RefusedError: the answer is no.
        """
        fields = {"Range": f"bytes={start}-"} if start else {}
        answer = self._request("GET", f"/models/{sha256}/content", fields=fields, preload_content=False)
        if answer.status >= 400:
            self._check(answer.status, b"".join(_blocks(answer)), "/models")
        return start if answer.status == 206 else 0, _blocks(answer)

    def _send(self, method: str, path: str, message: object = None, wait_s: float = 0.0) -> bytes:
        """Send a message and return the answer's body, for which the server may take ``wait_s`` longer than usual.

        Raises:
            ServerUnreachableError: no answer now.
            RefusedError: the answer is no.
        """
        body = b"" if message is None else encode(message)
        # As a file it is sent piece by piece, each with a time limit of its own.
        fields = {"Content-Length": str(len(body))} if body else {}
        answer = self._request(method, path, fields=fields, wait_s=wait_s, body=io.BytesIO(body) if body else None)
        self._check(answer.status, answer.data, path)
        return answer.data

    def _request(
        self, method: str, path: str, *, fields: Mapping[str, str] | None = None, wait_s: float = 0.0, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Return an answer of any status; raises ServerUnreachableError where there is none."""
        if (rest_s := self.contact.rest_s()) > 0:
            raise ServerUnreachableError(f"{self._base} asked to wait for {rest_s:.1f} s more", rest_s)
        timeout = urllib3.Timeout(connect=_CONNECT_S, read=self._read_s + wait_s)
        headers = {**self._headers, **(fields or {})}
        try:
            return self._pool.request(method, self._base + path, headers=headers, timeout=timeout, **options)
        except urllib3.exceptions.LocationValueError as error:
            raise PowerlabError(f"{self._base} is not a server address; write http://host:port.") from error
        except urllib3.exceptions.HTTPError as error:
            raise ServerUnreachableError(f"{self._base} does not answer ({error})") from error

    def _check(self, status: int, body: bytes, path: str) -> None:
        if status >= 500 or status == 429:
            raise ServerUnreachableError(f"{self._base}{path} answers with status {status}", self.contact.rest_s())
        if status >= 400:
            raise _refusal(self._base + path, status, body)


def _blocks(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield what arrives as it arrives, so that a cut loses none of it."""
    try:
        while block := answer.read1(_BLOCK_BYTES):
            yield block
    except urllib3.exceptions.HTTPError as error:
        raise ServerUnreachableError(f"the download was cut off ({error})") from error
    finally:
        answer.close()


def _refusal(address: str, status: int, body: bytes) -> RefusedError | ServerUnreachableError:
    """Return what a refusal means; one without a reason is somebody else's, a proxy's perhaps, and no answer."""
    try:
        problem = decode(body, Problem)
    except PowerlabError:
        return ServerUnreachableError(
            f"{address} answers with status {status} and no reason, so that is no powerlab server"
        )
    return RefusedError(problem.detail, problem.type.rpartition("/")[2], status)
