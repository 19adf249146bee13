"""The server as the command line sees it."""

from __future__ import annotations

import argparse
import os
from typing import TypeVar

from powerlab.domain.errors import PowerlabError

T = TypeVar("T")
DEFAULT_SERVER = "http://127.0.0.1:8765"


def add_server_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--server``."""
    parser.add_argument(
        "--server",
        metavar="URL",
        default=os.environ.get("POWERLAB_SERVER", DEFAULT_SERVER),
        help=f"the server's address (default: POWERLAB_SERVER, or {DEFAULT_SERVER})",
    )


class ServerApi:
    """Asks a server; every method raises PowerlabError where it does not answer or says no."""

    def __init__(self, server: str) -> None:
        import urllib3

        if not server.startswith(("http://", "https://")):
            raise PowerlabError(f"{server!r} is no server's address; give one like {DEFAULT_SERVER} with --server.")
        self.server = server.rstrip("/")
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(connect=5.0, read=30.0))
        self._headers = {"Content-Type": "application/json"}
        token = os.environ.get("POWERLAB_OPERATOR_TOKEN")
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, kind: type[T], **fields: str | int) -> T:
        """Return what the server has under ``/api/v1`` + path."""
        from powerlab.protocol.wire import decode

        given = {name: str(value) for name, value in fields.items()}
        return decode(self._send("GET", path, None, given), kind)

    def post(self, path: str, message: object, kind: type[T]) -> T:
        """Send a message and return the answer."""
        from powerlab.protocol.wire import decode, encode

        return decode(self._send("POST", path, encode(message), None), kind)

    def _send(self, method: str, path: str, body: bytes | None, fields: dict[str, str] | None) -> bytes:
        from urllib.parse import urlencode

        import urllib3

        address = f"{self.server}/api/v1{path}" + (f"?{urlencode(fields)}" if fields else "")
        try:
            answer = self._pool.request(method, address, body=body, headers=self._headers)
        except urllib3.exceptions.HTTPError as error:
            raise PowerlabError(
                f"no powerlab server answers at {self.server}; start one with `powerlab serve`, or give --server."
            ) from error
        if answer.status >= 400:
            raise PowerlabError(_reason(answer.status, answer.data))
        return answer.data


def _reason(status: int, body: bytes) -> str:
    from powerlab.protocol.messages import Problem
    from powerlab.protocol.wire import decode

    try:
        return decode(body, Problem).detail
    except PowerlabError:
        return f"the server answers with status {status}; give the address of a powerlab server with --server."
