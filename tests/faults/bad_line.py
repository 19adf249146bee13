"""A line to a server that cuts connections, cuts answers short, and is slow; as chance has it, from a seed."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

FATES = ("fine", "refused", "question cut", "answer cut", "answer lost", "slow")


@dataclass
class BadLine:
    """A TCP proxy; every connection has a fate.

    Attributes:
        target: the server's port.
        seed: of chance; the first connection's fate goes round with it.
        badness: how likely a connection is no good.
        fates: how many connections had which.
    """

    target: int
    seed: int
    badness: float = 0.6
    fates: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        with suppress(OSError):  # closed: the line is taken down
            while True:
                caller, _ = self._listener.accept()
                bad = self._chance.random() < self.badness
                fate = self._chance.choice(FATES[1:]) if bad else FATES[0]
                if not self.fates:
                    fate = FATES[1 + self.seed % (len(FATES) - 1)]
                self.fates[fate] += 1
                limit = self._chance.randrange(1, 900)
                thread = threading.Thread(target=self._carry, args=(caller, fate, limit))
                thread.start()
                self._threads.append(thread)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _carry(self, caller: socket.socket, fate: str, limit: int) -> None:
        """Carry what both say, as far as fate lets them."""
        with caller:
            if fate == "refused":
                return
            with socket.create_connection(("127.0.0.1", self.target)) as server, suppress(OSError):
                back = threading.Thread(target=self._answers, args=(server, caller, fate, limit))
                back.start()
                left = limit if fate == "question cut" else 1 << 62
                while left > 0 and (data := caller.recv(min(65536, left))):
                    if fate == "slow":
                        time.sleep(0.02)
                    server.sendall(data)
                    left -= len(data)
                for end in (server, caller):
                    with suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                back.join()

    def _answers(self, server: socket.socket, caller: socket.socket, fate: str, limit: int) -> None:
        left = {"answer cut": min(limit, 60), "answer lost": 0}.get(fate, 1 << 62)
        with suppress(OSError):
            while data := server.recv(65536):
                if fate == "slow":
                    time.sleep(0.02)
                caller.sendall(data[:left])
                left -= len(data)
                if left <= 0:
                    break
        with suppress(OSError):
            caller.shutdown(socket.SHUT_RDWR)


@contextmanager
def bad_line(target: int, seed: int, badness: float = 0.6) -> Iterator[BadLine]:
    """Open a line to a server's port."""
    line = BadLine(target, seed, badness)
    thread = threading.Thread(target=line.serve)
    thread.start()
    try:
        yield line
    finally:
        line.close()
        thread.join()
