"""ClickHouse's own engine (chdb) behind its own HTTP interface, as far as powerlab uses that: a process of its own.

Run as a program it takes a user and a password, prints its port, and answers until it is ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

USER, PASSWORD = "reader", "a b/c"


@contextmanager
def clickhouse_server(**environment: str) -> Iterator[int]:
    """Yield the port on loopback."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, USER, PASSWORD],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "ClickHouse has ended"
        yield int(line)
    finally:
        process.kill()  # it keeps nothing, and takes seconds to end by itself
        process.wait(10)
        process.stdout.close()


class _Handler(BaseHTTPRequestHandler):
    login: tuple[str, str]

    def do_POST(self) -> None:
        import chdb

        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        said = (self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"])
        if said != self.login:
            self._answer(403, b"Code: 516. DB::Exception: Authentication failed. (AUTHENTICATION_FAILED)")
            return
        question, _, format_ = text.rpartition(" FORMAT ")
        fields = dict(parse_qsl(urlsplit(self.path).query))
        assert fields.pop("wait_end_of_query") == "1"  # the interface's own; all others are settings of the engine
        settings = ", ".join(f"{name}={value}" for name, value in fields.items())
        try:
            self._answer(200, chdb.query(f"{question} SETTINGS {settings}", format_).bytes())
        except RuntimeError as error:
            self._answer(500, str(error).encode())

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


if __name__ == "__main__":
    _Handler.login = (sys.argv[1], sys.argv[2])
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
