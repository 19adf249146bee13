"""The server as the command line sees it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    import urllib3

T = TypeVar("T")
DEFAULT_SERVER = "http://127.0.0.1:8765"
_CONNECT_S, _READ_S = 5.0, 30.0


def add_server_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--server``."""
    parser.add_argument(
        "--server",
        metavar="URL",
        default=os.environ.get("POWERLAB_SERVER", DEFAULT_SERVER),
        help=f"the server's address (default: POWERLAB_SERVER, or {DEFAULT_SERVER})",
    )


class ServerAwayError(PowerlabError):
    """No answer, or one that says "later" (5xx, 429): trying again may help."""


class StatusError(PowerlabError):
    """The server said no.

    Attributes:
        kind: the last part of the problem's type, for example ``not-found``.
    """

    def __init__(self, detail: str, kind: str) -> None:
        super().__init__(detail)
        self.kind = kind


class ServerApi:
    """Asks a server; every method raises PowerlabError where it does not answer or says no."""

    def __init__(self, server: str, token: str | None = None) -> None:
        import urllib3

        if not server.startswith(("http://", "https://")):
            raise PowerlabError(f"{server!r} is no server's address; give one like {DEFAULT_SERVER} with --server.")
        self.server = server.rstrip("/")
        self._pool = urllib3.PoolManager(retries=False)
        self._headers = {"Content-Type": "application/json"}
        token = token or os.environ.get("POWERLAB_TOKEN")
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, kind: type[T], **fields: str | int) -> T:
        """Return what the server has under ``/api/v1`` + path."""
        from powerlab.protocol.wire import decode

        given = {name: str(value) for name, value in fields.items()}
        return decode(self.send("GET", path, None, fields=given), kind)

    def post(self, path: str, message: object, kind: type[T]) -> T:
        """Send a message and return the answer."""
        from powerlab.protocol.wire import decode, encode

        return decode(self.send("POST", path, encode(message)), kind)

    def delete(self, path: str) -> None:
        """Remove what the server has there."""
        self.send("DELETE", path, None)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str] | None = None,
        *,
        fields: dict[str, str] | None = None,
        read_s: float = _READ_S,
    ) -> bytes:
        """Return the answer's body.

        Raises:
            ServerAwayError: no answer now.
            StatusError: the answer is no.
        """
        answer = self._ask(method, path, body, headers or {}, fields, read_s=read_s)
        _check(answer.status, answer.data)
        return answer.data

    def stream(self, path: str, start: int, block_bytes: int) -> tuple[int, Iterator[bytes]]:
        """Return a file's bytes from ``start`` on, in blocks, and where they really begin: there, or at 0.

        Raises:
            ServerAwayError: no answer now; the iterator raises it too, where the connection is cut.
            StatusError: the answer is no.
        """
        headers = {"Range": f"bytes={start}-"} if start else {}
        answer = self._ask("GET", path, None, headers, None, preload=False)
        if answer.status >= 400:
            _check(answer.status, answer.read())
        return start if answer.status == 206 else 0, self._blocks(answer, block_bytes)

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: dict[str, str],
        fields: dict[str, str] | None,
        *,
        preload: bool = True,
        read_s: float = _READ_S,
    ) -> urllib3.BaseHTTPResponse:
        from urllib.parse import urlencode

        import urllib3

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
        import urllib3

        try:
            yield from answer.stream(block_bytes)
        except urllib3.exceptions.HTTPError as error:
            raise self._away() from error
        finally:
            answer.close()

    def _away(self) -> ServerAwayError:
        return ServerAwayError(
            f"no powerlab server answers at {self.server}; start one with `powerlab serve`, or give --server."
        )


def _check(status: int, body: bytes) -> None:
    """Raise what a status of 400 or more means."""
    from powerlab.protocol.messages import Problem
    from powerlab.protocol.wire import decode

    if status < 400:
        return
    try:
        problem = decode(body, Problem)
        detail, kind = problem.detail, problem.type.rpartition("/")[2]
    except PowerlabError:
        detail = f"the server answers with status {status}; give the address of a powerlab server with --server."
        kind = ""
    if status >= 500 or status == 429:
        raise ServerAwayError(detail)
    raise StatusError(detail, kind)
