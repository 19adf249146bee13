"""The way back from chunks to a trace, as tests need it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from powerlab.domain.power import Trace
from powerlab.protocol.chunks import payload_of, samples_of
from powerlab.protocol.messages import TraceChunk


def join(chunks: Sequence[TraceChunk]) -> Trace:
    """Put the chunks of one rail together again; they must be in order and at least one."""
    samples = [samples_of(chunk, payload_of(chunk), chunk.codec) for chunk in chunks]
    return Trace(
        rail=chunks[0].rail,
        time_ns=np.concatenate([time_ns for time_ns, _ in samples]),
        value=np.concatenate([value for _, value in samples]),
        read_cost_ns=chunks[0].read_cost_ns,
        part=chunks[0].part,
    )
