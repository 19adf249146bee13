"""As little of an HTTP client as a thousand simulated agents in one process can afford.

They share two cores with the server that is being measured: a general client would take more of them than the server.
Answers of powerlab have a Content-Length (RFC 9112, section 6.2) and are read by it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import urlsplit

from powerlab.protocol.wire import encode


class NoAnswerError(Exception):
    """The connection could not be had, or broke before the answer was whole."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    body: bytes
    retry_after_s: float | None = None


class Connection:
    """One connection to a server, made when it is needed, used by one task at a time."""

    def __init__(self, url: str, token: str | None = None) -> None:
        address = urlsplit(url)
        self._host, self._port = str(address.hostname), address.port or 80
        self._head = f"Host: {address.netloc}\r\nContent-Type: application/json\r\n" + (
            f"Authorization: Bearer {token}\r\n" if token else ""
        )
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, method: str, path: str, message: object = None) -> Answer:
        """Send a message, or its bytes, to an address under ``/api/v1``; raises NoAnswerError."""
        body = message if isinstance(message, bytes) else b"" if message is None else encode(message)
        async with self._turn:
            return await self._ask(method, f"/api/v1{path}", body)

    async def _ask(self, method: str, path: str, body: bytes) -> Answer:
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port)
            reader, writer = self._streams
            writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            return await self._answer(reader)
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            self.cut()
            raise NoAnswerError(str(error)) from error
        except asyncio.CancelledError:
            self.cut()  # the next answer would be this one's
            raise

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        if fields.get("connection", "").lower() == "close":
            self.cut()
        later = fields.get("retry-after")
        return Answer(int(head[0].split()[1]), body, None if later is None else float(later))

    def cut(self) -> None:
        """Drop the connection, whatever is under way."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None
