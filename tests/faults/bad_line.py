"""A line to a server that does what lines do: it cuts, resets, half-closes, swallows, delays and trickles.

Every connection has a fate, which chance draws from a seed. A fate strikes when so and so many bytes of the questions,
or of the answers, have passed. A line that swallows carries nothing more and tells nobody; the caller has to give up,
and the server waits on, as for a device that has lost its power.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

FINE = "fine"
FATES = (
    "refused",
    *(f"{way} {strike}" for strike in ("cut", "reset", "half-closed", "swallowed") for way in ("question", "answer")),
    "late",
    "slow",
)
LATE_S = 0.02
PIECE = 4096
_NO_FIN = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends RST in place of FIN."""


@dataclass
class BadLine:
    """A TCP proxy.

    Attributes:
        target: the server's port.
        seed: of chance; the first connection's fate goes round with it.
        badness: how likely a connection is no good.
        fate: of every connection; None: as chance has it.
        most_bytes: how many may pass before a fate strikes; as likely to have one digit as any other number of digits.
        slow_bytes_per_s: what a slow connection carries each way.
        fates: how many connections had which.
        answered_bytes: of all answers together, as far as they were carried.
    """

    target: int
    seed: int
    badness: float = 0.6
    fate: str | None = None
    most_bytes: int = 10_000
    slow_bytes_per_s: float = 30_000
    fates: Counter[str] = field(default_factory=Counter)
    answered_bytes: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)  # what waits here is on no slow line
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port = self._listener.getsockname()[1]
        self._carried: list[tuple[threading.Thread, Carried]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        with suppress(OSError):  # closed: the line is taken down
            while True:
                caller, _ = self._listener.accept()
                fate = self._draw()
                self.fates[fate] += 1
                if fate == "refused":
                    caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_FIN)
                    caller.close()
                    continue
                limit = int(self.most_bytes ** self._chance.random())
                carried = Carried(self, caller, socket.create_connection(("127.0.0.1", self.target)), fate, limit)
                thread = threading.Thread(target=carried.carry)
                thread.start()
                self._carried.append((thread, carried))

    def _draw(self) -> str:
        if self.fate is not None:
            return self.fate
        if not self.fates:
            return FATES[self.seed % len(FATES)]
        return self._chance.choice(FATES) if self._chance.random() < self.badness else FINE

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread, carried in self._carried:
            carried.end(socket.SHUT_RDWR)
            thread.join()


@dataclass
class Carried:
    """One connection through a line."""

    line: BadLine
    caller: socket.socket
    server: socket.socket
    fate: str
    limit: int
    struck: bool = False

    def carry(self) -> None:
        """Carry both ways until both are over."""
        with self.caller, self.server:
            back = threading.Thread(target=self._pump, args=("answer", self.server, self.caller))
            back.start()
            self._pump("question", self.caller, self.server)
            back.join()

    def end(self, how: int) -> None:
        """Shut both ends, which wakes whoever waits for them."""
        for end in (self.caller, self.server):
            with suppress(OSError):  # it is over already
                end.shutdown(how)

    def _pump(self, way: str, source: socket.socket, sink: socket.socket) -> None:
        left = self.limit if self.fate.startswith(way) else 1 << 62
        with suppress(OSError):  # an end is gone
            while left > 0 and (data := source.recv(min(PIECE, left))):
                self._delay(len(data))
                sink.sendall(data)
                left -= len(data)
                if way == "answer":
                    self.line.answered_bytes += len(data)
            if left == 0:
                self._strike(self.fate.removeprefix(f"{way} "), source, sink)
            elif not self.struck:
                sink.shutdown(socket.SHUT_WR)

    def _delay(self, count: int) -> None:
        if self.fate == "late":
            time.sleep(LATE_S)
        if self.fate == "slow":
            time.sleep(count / self.line.slow_bytes_per_s)

    def _strike(self, strike: str, source: socket.socket, sink: socket.socket) -> None:
        if strike == "cut":
            self.end(socket.SHUT_RDWR)
        elif strike == "reset":
            self.struck = True
            for end in (source, sink):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_FIN)
            self.end(socket.SHUT_RD)
        else:
            if strike == "half-closed":
                sink.shutdown(socket.SHUT_WR)
            while source.recv(PIECE):
                pass


@contextmanager
def bad_line(target: int, seed: int, **options: Any) -> Iterator[BadLine]:
    """Open a line to a server's port; ``options`` are those of :class:`BadLine`."""
    line = BadLine(target, seed, **options)
    thread = threading.Thread(target=line.serve)
    thread.start()
    try:
        yield line
    finally:
        line.close()
        thread.join()
