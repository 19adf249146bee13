"""What measuring needs of the other devices of a cluster, which train and are recorded together with this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from powerlab.domain.place import Place
from powerlab.domain.power import Rail, Trace
from powerlab.domain.run import NodePower
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the other devices recorded, on this one's CLOCK_MONOTONIC.

    Attributes:
        traces: of their rails; none of one that failed.
        zones: temperatures.
        throttled: in sentences, how they were slowed down.
        failure: what kept their power from being recorded; None where nothing did.
        drift: what changed in their power modes; None where they held.
        background_cores: the most cores that others kept busy on one of them; None where that says nothing.
    """

    traces: tuple[Trace, ...] = ()
    zones: tuple[Trace, ...] = ()
    throttled: tuple[str, ...] = ()
    failure: str | None = None
    drift: str | None = None
    background_cores: float | None = None


class Nodes(Protocol):
    """The other devices."""

    @property
    def rails(self) -> Sequence[Rail]:
        """Their rails, named so that no two devices have the same."""
        ...

    def place(self) -> Place:
        """Return the first process's place in the ring of the next run; its socket listens."""
        ...

    def run(self, point: Point, place: Place, kill: Callable[[], None]) -> AbstractContextManager[None]:
        """Let all of them load a point and make the steps that this device begins; ``kill`` ends this one's worker.

        Raises:
            WorkerError: one of them cannot, or is gone; names it.
        """
        ...

    def record(self) -> None:
        """Begin to record; what fails is told by :meth:`recorded`."""
        ...

    def recorded(self) -> Recorded:
        """End recording, and return what there is."""
        ...

    def powers(self, own: Sequence[Rail]) -> tuple[NodePower, ...]:
        """Return all devices, this one with its ``own`` rails first."""
        ...


@contextmanager
def with_nodes(nodes: Nodes | None, point: Point, place: Place | None, kill: Callable[[], None]) -> Iterator[None]:
    """Run a point with the other devices, where there are some."""
    if nodes is None or place is None:
        yield
        return
    with nodes.run(point, place, kill):
        yield
