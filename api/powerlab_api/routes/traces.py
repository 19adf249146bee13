"""Power traces of runs: read short enough to draw, uploaded in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from powerlab.domain.power import Part, Rail, Trace
from powerlab.protocol.messages import ChunkUpload, Stored
from powerlab.store import queries
from powerlab.store.decimate import Bucket
from powerlab.store.traces import DatabaseTraces
from powerlab.store.writes.runs import store_chunk
from powerlab_api.deps import ReadSession, StoreDep
from powerlab_api.needs import AgentDevice, Needs

router = APIRouter(prefix="/runs/{run_id}/traces", tags=["traces"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceView:
    """A rail's trace in one part of the run: ``time_ns`` on the device's CLOCK_MONOTONIC, ``value`` as the rail says.

    That is W, J of a counter, s of a query's latency at the time of its issue, or °C.
    """

    rail: Rail
    time_ns: tuple[int, ...]
    value: tuple[float, ...]
    read_cost_ns: int
    part: Part


def _view(trace: Trace) -> TraceView:
    return TraceView(
        rail=trace.rail,
        time_ns=tuple(trace.time_ns.tolist()),
        value=tuple(trace.value.tolist()),
        read_cost_ns=trace.read_cost_ns,
        part=trace.part,
    )


@router.get("", dependencies=[Needs.viewer])
def read_traces(
    session: ReadSession,
    run_id: str,
    points: Annotated[int, Query(ge=2, le=100_000, description="samples of each rail at most")] = 1000,
    bucket: Annotated[Bucket, Query(description="extremes of neighbouring samples, or their mean")] = Bucket.MINMAX,
) -> tuple[TraceView, ...]:
    """Return all that was recorded with a run: one trace a rail and part of the run."""
    queries.run(session, run_id)
    return tuple(_view(trace) for trace in DatabaseTraces(session).decimate(run_id, points, bucket))


@router.put("/chunks", dependencies=[Needs.agent])
def put_chunk(store: StoreDep, device_id: AgentDevice, run_id: str, upload: ChunkUpload, response: Response) -> Stored:
    """Store a chunk in its rail's place: 201 where it is new, 200 where it is there already."""
    with store.write() as session:
        created = store_chunk(session, device_id, run_id, upload)
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    return Stored(outcome="created" if created else "unchanged")
