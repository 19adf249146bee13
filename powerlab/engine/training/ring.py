"""Processes on several machines that learn together without MPI: a ring of TCP connections.

Sums go round the ring in parts: each process adds its part to what comes from its left and hands it to its right, and
then the sums go round (P. Patarasuk and X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
2009). Each sum is made by one process and copied, so that all have the same bits. A thread of each process sends and
receives what :meth:`RingGroup.begin` was given, while gradients of earlier layers are computed.

Nothing is encrypted; who does not know the key is not let in.
"""

from __future__ import annotations

import queue
import select
import threading
from collections.abc import Sequence

import numpy as np

from powerlab.domain.errors import PowerlabError
from powerlab.domain.place import GONE, Place
from powerlab.engine.program.program import Floats
from powerlab.engine.training.meeting import neighbours

_GO, _PART_BYTES = b"g", 1 << 20


class RingBrokenError(PowerlabError):
    """Another process is gone."""


class RingGroup:
    """The processes of a ring; fulfils :class:`powerlab.engine.training.together.Group`.

    Args:
        place: this process's place among them.

    Attributes:
        size: how many there are.
        rank: number of this one, from 0 on.

    Raises:
        PowerlabError: the others did not come.
    """

    def __init__(self, place: Place) -> None:
        self.size, self.rank = place.size, place.rank
        self._left, self._right = neighbours(place)
        for one in (self._left, self._right):
            one.setblocking(False)
        self._begun: queue.Queue[Sequence[Floats] | None] = queue.Queue()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._work, name="ring", daemon=True)
        self._thread.start()

    def go(self) -> bool:
        """Let all begin the next step together: the first process says so, the others wait for it.

        Returns:
            False in a process whose left neighbour has ended: there is no next step.

        Raises:
            PowerlabError: the ring is broken.
        """
        if self.rank > 0:
            said = bytearray(1)
            if not self._exchange(memoryview(b""), memoryview(said), may_end=True):
                return False
        if self.rank + 1 < self.size:
            self._exchange(memoryview(_GO), memoryview(b""))
        return True

    def add_up(self, arrays: Sequence[Floats]) -> None:
        """Add up."""
        self.begin(arrays)
        self.finish()

    def begin(self, arrays: Sequence[Floats]) -> None:
        """Begin to add up arrays."""
        if arrays:
            self._begun.put(arrays)

    def finish(self) -> None:
        """Wait for all that was begun.

        Raises:
            PowerlabError: the ring is broken.
        """
        self._begun.join()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End the thread and the connections."""
        self._begun.put(None)
        self._thread.join()
        self._left.close()
        self._right.close()

    def _work(self) -> None:
        while (arrays := self._begun.get()) is not None:
            try:
                for array in arrays if self._failure is None else ():
                    self._sum(array)
            except Exception as error:
                self._failure = error
            finally:
                self._begun.task_done()

    def _sum(self, array: Floats) -> None:
        parts = np.array_split(array.reshape(-1), self.size)
        received = np.empty(max(part.size for part in parts), np.float32)
        for turn in range(self.size - 1):
            sent, mine = (parts[(self.rank - turn - behind) % self.size] for behind in (0, 1))
            self._exchange(_bytes(sent), _bytes(received[: mine.size]))
            mine += received[: mine.size]
        for turn in range(self.size - 1):
            sent, mine = (parts[(self.rank + 1 - turn - behind) % self.size] for behind in (0, 1))
            self._exchange(_bytes(sent), _bytes(mine))

    def _exchange(self, out: memoryview, into: memoryview, *, may_end: bool = False) -> bool:
        """Send to the right and receive from the left at the same time; False where the left has ended, if it may."""
        sent = got = 0
        try:
            while sent < len(out) or got < len(into):
                readers = [self._left] if got < len(into) else []
                writers = [self._right] if sent < len(out) else []
                can_read, can_write, _ = select.select(readers, writers, [])
                if can_write:
                    sent += self._right.send(out[sent : sent + _PART_BYTES])
                if can_read:
                    count = self._left.recv_into(into[got:])
                    if not count and may_end and not got:
                        return False
                    if not count:
                        raise ConnectionResetError("it closed the connection")
                    got += count
        except OSError as error:
            raise RingBrokenError(f"another process of the {self.size} {GONE} ({error.strerror or error}).") from error
        return True


def _bytes(array: Floats) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")
