"""One run with a very long trace."""

from __future__ import annotations

import numpy as np
from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from bench.database.bulk.fleet import RAIL_NAMES
from powerlab.domain.power import Part, Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.protocol.chunks import payload_of, split
from powerlab.store.tables import RunRow, TraceChunkRow

PERIOD_NS = 1_000_000


def lengthen(session: Session, sample_count: int) -> str:
    """Give the newest run with traces a trace of so many samples, at 1 kHz on two rails; returns its identifier."""
    newest = text("SELECT run_id FROM trace_chunk ORDER BY received_at DESC, run_id LIMIT 1")
    run = session.scalars(select(RunRow).where(RunRow.id == session.scalar(newest))).one()
    rails = session.scalars(select(TraceChunkRow.rail_id).where(TraceChunkRow.run_id == run.id).distinct()).all()
    session.execute(delete(TraceChunkRow).where(TraceChunkRow.run_id == run.id))
    start_ns, length = run.window_start_ns, sample_count // len(RAIL_NAMES)
    run.window_end_ns = start_ns + length * PERIOD_NS
    for number, rail_id in enumerate(sorted(rails)):
        for chunk in split(_trace(RAIL_NAMES[number], start_ns, length, number)):
            session.add(
                TraceChunkRow(
                    run_id=run.id, received_at=run.received_at, rail_id=rail_id, part=chunk.part.value,
                    position=chunk.position, t_first_ns=chunk.t_first_ns, t_last_ns=chunk.t_last_ns,
                    sample_count=chunk.sample_count, value_min=chunk.value_min, value_max=chunk.value_max,
                    value_sum=chunk.value_sum, read_cost_ns=chunk.read_cost_ns, codec=chunk.codec,
                    sha256=chunk.sha256, payload=payload_of(chunk),
                )
            )  # fmt: skip
    return str(run.id)


def _trace(name: str, start_ns: int, length: int, seed: int) -> Trace:
    """A sensor with steps of 8 mW: a load that comes and goes, and noise."""
    noise = np.random.default_rng(seed)
    time_ns = start_ns + np.arange(length) * PERIOD_NS + noise.integers(0, PERIOD_NS // 10, length)
    load = 6 * (np.sin(np.arange(length) / 9000) > 0) + noise.normal(0, 0.4, length)
    rail = Rail(
        source="ina3221", name=name, quantity=RailQuantity.POWER, resolution=0.008, relative_error=0.01,
        update_period_s=0.01, provenance=Provenance.MEASURED,
    )  # fmt: skip
    value = np.round((8 + load) / rail.resolution) * rail.resolution
    return Trace(rail=rail, time_ns=time_ns, value=value, read_cost_ns=20_000, part=Part.RUN)
