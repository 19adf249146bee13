"""Requests and responses over HTTP, with errors as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar
from urllib.parse import urlencode

import urllib3

from powerlab.client.errors import ServerAwayError, StatusError
from powerlab.client.patience import patiently
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Problem
from powerlab.protocol.retry_after import retry_after_s
from powerlab.protocol.wire import decode, encode

T = TypeVar("T")
DEFAULT_SERVER = "http://127.0.0.1:8765"
_CONNECT_S, _READ_S = 5.0, 30.0


class Transport:
    """Asks one server; every method raises PowerlabError where it does not answer or says no.

    May be used by several threads.
    """

    def __init__(self, server: str, token: str | None = None) -> None:
        if not server.startswith(("http://", "https://")):
            raise PowerlabError(f"{server!r} is not a server address; give one like {DEFAULT_SERVER} with --server.")
        self.server = server.rstrip("/")
        self._pool = urllib3.PoolManager(retries=False)
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, kind: type[T], /, **fields: object) -> T:
        """Return what the server has under ``/api/v1`` + path, again where it is away.

        None leaves a field out, a tuple repeats it.
        """
        given = [
            (name, _word(value))
            for name, values in fields.items()
            for value in (values if isinstance(values, tuple) else (values,))
            if value is not None
        ]
        return decode(patiently(lambda: self.send("GET", path, None, fields=given)), kind)

    def post(self, path: str, message: object, kind: type[T]) -> T:
        """Send a message once and return the answer."""
        return decode(self.send("POST", path, encode(message)), kind)

    def delete(self, path: str) -> None:
        """Remove what the server has there."""
        self.send("DELETE", path, None)

    def repeat(
        self, method: str, path: str, message: object, kind: type[T], headers: Mapping[str, str] | None = None
    ) -> T:
        """Send a message that means the same however often it comes, trying again where the server is away."""
        body = encode(message)
        return decode(patiently(lambda: self.send(method, path, body, dict(headers or {}))), kind)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str] | None = None,
        *,
        fields: Sequence[tuple[str, str]] = (),
        read_s: float = _READ_S,
    ) -> bytes:
        """Return the answer's body.

        Raises:
            ServerAwayError: no answer now.
            StatusError: the answer is no.
        """
        answer = self._ask(method, path, body, headers or {}, fields, read_s=read_s)
        _check(answer, answer.data)
        return answer.data

    def stream(self, path: str, start: int, block_bytes: int) -> tuple[int, Iterator[bytes]]:
        """Return a file's bytes from ``start`` on, in blocks, and where they really begin: there, or at 0.

        Raises:
            ServerAwayError: no answer now; the iterator raises it too, where the connection is cut.
            StatusError: the answer is no.
        """
        headers = {"Range": f"bytes={start}-"} if start else {}
        answer = self._ask("GET", path, None, headers, (), preload=False)
        if answer.status >= 400:
            _check(answer, answer.read())
        return start if answer.status == 206 else 0, self._blocks(answer, block_bytes)

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        fields: Sequence[tuple[str, str]],
        *,
        preload: bool = True,
        read_s: float = _READ_S,
    ) -> urllib3.BaseHTTPResponse:
        address = f"{self.server}/api/v1{path}" + (f"?{urlencode(fields)}" if fields else "")
        said = {**self._headers, **headers}
        timeout = urllib3.Timeout(connect=_CONNECT_S, read=read_s)
        try:
            return self._pool.request(
                method, address, body=body, headers=said, timeout=timeout, preload_content=preload
            )
        except urllib3.exceptions.SSLError as error:
            raise PowerlabError(
                f"TLS with {self.server} fails ({error}); where the certificate is your own authority's, set "
                "SSL_CERT_FILE to that authority's."
            ) from error
        except urllib3.exceptions.HTTPError as error:
            raise self._away() from error

    def _blocks(self, answer: urllib3.BaseHTTPResponse, block_bytes: int) -> Iterator[bytes]:
        try:
            yield from answer.stream(block_bytes)
        except urllib3.exceptions.HTTPError as error:
            raise self._away() from error
        finally:
            answer.close()

    def _away(self) -> ServerAwayError:
        return ServerAwayError(
            f"no powerlab server answers at {self.server}; start one with `powerlab serve`, or give another address."
        )


def _word(value: object) -> str:
    """Return a query parameter: booleans as JSON writes them, times as ISO 8601, the rest as it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _check(answer: urllib3.BaseHTTPResponse, body: bytes) -> None:
    """Raise what a status of 400 or more means."""
    if answer.status < 400:
        return
    try:
        problem = decode(body, Problem)
        detail, kind = problem.detail, problem.type.rpartition("/")[2]
    except PowerlabError:
        detail = f"the server answers with status {answer.status}; give the address of a powerlab server with --server."
        kind = ""
    if answer.status >= 500 or answer.status == 429:
        raise ServerAwayError(detail, retry_after_s(answer.headers))
    raise StatusError(detail, kind, answer.status)
