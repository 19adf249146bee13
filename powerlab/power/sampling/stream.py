"""Readings that arrive unasked: a thread buffers them, stamped on arrival, for the poller.

Stamps inside a line are never used: they come from a wall clock, which somebody may set meanwhile. A connection that is
lost stays lost until its session ends: every later reading fails, the trace ends there, and the rules find a run that
its samples do not span. The next session connects anew.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from powerlab.power.base import Stamped

_WAIT_S = 0.1
"""How long a thread may be deaf to the end of its session."""
_RETRY_S = 0.5
_KEPT = 4096
"""Readings kept for a rail that nobody takes; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """What came at one moment on CLOCK_MONOTONIC: readings in W by the name of their rail."""

    time_ns: int
    values_w: Mapping[str, float]


class Feed(Protocol):
    """One connection to something that sends by itself.

    Attributes:
        complaint: the last thing that came and was no reading; empty where there was none.
    """

    complaint: str

    def receive(self, timeout_s: float) -> Sequence[Arrival]:
        """Wait for at most that long and return what has come; OSError where the connection is lost."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Stream:
    """Reads one feed for several rails.

    Args:
        connect: opens the feed; OSError where it cannot.
        name: who sends, for sentences.
        reconnect_s: for how long connecting is tried again where it fails.
        patience_s: how long the first reading may take.
        silence_s: without a reading for that long, readings fail.
    """

    def __init__(
        self, connect: Callable[[], Feed], name: str, *, patience_s: float, silence_s: float, reconnect_s: float = 0.0
    ) -> None:
        self._connect, self._name = connect, name
        self._patience_s, self._silence_s, self._reconnect_s = patience_s, silence_s, reconnect_s
        self._arrived: dict[str, deque[Stamped]] = {}
        self._newest_ns = 0
        self._failure: Exception | None = ConnectionError(f"{name} is not connected")
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._woken = threading.Event()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Be connected; entered once the first reading has come.

        Raises:
            OSError: nobody answers, or no reading comes.
        """
        feed = self._connected()
        self._arrived, self._failure = {}, None
        self._stopping.clear()
        self._woken.clear()
        thread = threading.Thread(target=self._run, args=(feed,), name=f"powerlab-{self._name}", daemon=True)
        thread.start()
        try:
            if not self._woken.wait(self._patience_s):
                said = f"; it sent {feed.complaint!r}, which is no reading" if feed.complaint else ""
                raise TimeoutError(f"{self._name} sent no reading within {self._patience_s:g} s{said}")
            self._raise_failure()
            yield
        finally:
            self._stopping.set()
            thread.join()
            feed.close()
            self._arrived, self._failure = {}, ConnectionError(f"{self._name} is not connected")

    def read(self, rail: str) -> tuple[Stamped, ...]:
        """Return what has come for a rail since the last call, oldest first.

        Raises:
            OSError: the connection is lost or silent.
        """
        with self._lock:
            waiting = self._arrived.get(rail, deque())
            taken = tuple(waiting)
            waiting.clear()
        if not taken:
            self._raise_failure()
            if time.monotonic_ns() - self._newest_ns > self._silence_s * 1e9:
                raise TimeoutError(f"{self._name} has sent nothing for {self._silence_s:g} s")
        return taken

    def rails(self) -> tuple[str, ...]:
        """Return the names that readings came for since the session began."""
        with self._lock:
            return tuple(self._arrived)

    def _connected(self) -> Feed:
        deadline_ns = time.monotonic_ns() + self._reconnect_s * 1e9
        while True:
            try:
                return self._connect()
            except PermissionError:
                raise
            except OSError:
                if time.monotonic_ns() + _RETRY_S * 1e9 > deadline_ns:
                    raise
            time.sleep(_RETRY_S)

    def _run(self, feed: Feed) -> None:
        try:
            while not self._stopping.is_set():
                for arrival in feed.receive(_WAIT_S):
                    self._keep(arrival)
        except Exception as error:
            self._failure = error  # read() raises it to whoever asks
        finally:
            self._woken.set()

    def _keep(self, arrival: Arrival) -> None:
        with self._lock:
            for rail, value_w in arrival.values_w.items():
                self._arrived.setdefault(rail, deque(maxlen=_KEPT)).append(Stamped(arrival.time_ns, value_w))
        if arrival.values_w:
            self._newest_ns = arrival.time_ns
            self._woken.set()

    def _raise_failure(self) -> None:
        """Raise what ended the connection: each time anew, for an exception that is raised again grows."""
        if isinstance(self._failure, OSError):
            raise ConnectionError(str(self._failure)) from self._failure
        if self._failure is not None:
            raise self._failure
