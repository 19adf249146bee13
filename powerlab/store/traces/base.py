"""The interface of a trace store, and the pieces in which it returns traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from powerlab.domain.power import Part, Rail, Trace
from powerlab.protocol.messages import TraceChunk
from powerlab.store.reads.decimate import Bucket

FOREVER_NS = 2**63 - 1
"""The last time of a window without an end."""
Samples = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Times in ns and values, both of shape (n,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive samples of one rail, as long as they were when they arrived.

    Attributes:
        rail: where the samples come from.
        part: the part of the run.
        position: counts the pieces of a rail and part from 0.
        read_cost_ns: median time one read took.
        samples: reads them; raises PowerlabError where they are damaged.
    """

    rail: Rail
    part: Part
    position: int
    read_cost_ns: int
    samples: Callable[[], Samples]


class TraceStore(Protocol):
    """A trace store; what is known of each chunk but its samples stands in the database wherever they lie."""

    def append(self, session: Session, device_id: str, run_id: str, chunks: Sequence[TraceChunk]) -> int:
        """Store chunks; returns how many samples are new, for the same bytes may be there already.

        Raises:
            PowerlabError: a chunk is damaged, or it cannot be written.
            ConflictError: other bytes were stored in a chunk's place before.
        """
        ...

    def window(self, session: Session, run_id: str, start_ns: int, end_ns: int) -> Iterator[Trace]:
        """Yield the part of each rail's trace that lies in a window, both ends included."""
        ...

    def decimate(
        self,
        session: Session,
        run_id: str,
        points: int,
        bucket: Bucket,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> Iterator[Trace]:
        """Yield each rail's trace with at most that many points, of a window where one is given."""
        ...

    def scan(self, session: Session, run_id: str) -> Iterator[Piece]:
        """Yield everything, a few pieces in memory at a time: rails by name, then parts, then by time."""
        ...


def trace_store(session: Session) -> TraceStore:
    """Return the trace store that goes with a session."""
    store: TraceStore = session.info["traces"]
    return store


def whole(pieces: Iterable[Piece]) -> Iterator[Trace]:
    """Put pieces together, a trace a rail and part; raises PowerlabError where one is damaged."""
    for (rail, part), own in groupby(pieces, key=lambda piece: (piece.rail, piece.part)):
        together = list(own)
        samples = [piece.samples() for piece in together]
        yield Trace(
            rail=rail,
            time_ns=np.concatenate([time_ns for time_ns, _ in samples]),
            value=np.concatenate([value for _, value in samples]),
            read_cost_ns=together[0].read_cost_ns,
            part=part,
        )


def cut(traces: Iterable[Trace], start_ns: int, end_ns: int) -> Iterator[Trace]:
    """Yield what lies in a window, both ends included; traces without a sample there are left out."""
    for trace in traces:
        inside = (trace.time_ns >= start_ns) & (trace.time_ns <= end_ns)
        if np.any(inside):
            yield Trace(
                rail=trace.rail,
                time_ns=trace.time_ns[inside],
                value=trace.value[inside],
                read_cost_ns=trace.read_cost_ns,
                part=trace.part,
            )
