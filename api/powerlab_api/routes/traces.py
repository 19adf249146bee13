"""Power traces of runs: read decimated, uploaded in chunks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from powerlab.domain.power import Trace
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, Stored
from powerlab.protocol.records import TraceView
from powerlab.store.maintenance.retired import check_traces_kept
from powerlab.store.reads import queries
from powerlab.store.reads.decimate import Bucket
from powerlab.store.traces.base import trace_store
from powerlab.store.writes.runs import store_chunk, store_chunks
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.etags import UNCHANGED, IfNoneMatch, fresh
from powerlab_api.roles import AgentDevice, Requires

router = APIRouter(prefix="/runs/{run_id}/traces", tags=["traces"])


def _view(trace: Trace) -> TraceView:
    return TraceView(
        rail=trace.rail,
        time_ns=tuple(trace.time_ns.tolist()),
        value=tuple(trace.value.tolist()),
        read_cost_ns=trace.read_cost_ns,
        part=trace.part,
    )


Nanoseconds = Annotated[int | None, Query(ge=0, le=2**63 - 1, description="on the device's CLOCK_MONOTONIC")]


@router.get("", dependencies=[Requires.viewer], response_model=tuple[TraceView, ...], responses=UNCHANGED)
def read_traces(
    session: ReadSession,
    run_id: str,
    *,
    from_ns: Nanoseconds = None,
    to_ns: Nanoseconds = None,
    points: Annotated[int, Query(ge=2, le=100_000, description="samples of each rail at most")] = 1000,
    bucket: Annotated[Bucket, Query(description="extremes of neighbouring samples, or their mean")] = Bucket.MINMAX,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Return what was recorded with a run, whole or within a window: one trace a rail and part of the run.

    Both ends of the window belong to it. Of a trace that is longer than ``points`` neighbours are drawn together; with
    their extremes the first and the last sample stay, so that windows beside each other leave no gap.
    """
    queries.run(session, run_id)
    check_traces_kept(session, run_id)
    found = trace_store(session).decimate(session, run_id, points, bucket, start_ns=from_ns, end_ns=to_ns)
    return fresh(tuple(map(_view, found)), if_none_match)


@router.put("/chunks", dependencies=[Requires.agent])
def put_chunk(store: StoreDep, device_id: AgentDevice, run_id: str, upload: ChunkUpload, response: Response) -> Stored:
    """Store a chunk in its rail's place: 201 where it is new, 200 where it is there already."""
    with store.write() as session:
        created = store_chunk(session, device_id, run_id, upload)
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    return Stored(outcome="created" if created else "unchanged")


@router.post("/chunks", dependencies=[Requires.agent])
def post_chunks(
    store: StoreDep, device_id: AgentDevice, run_id: str, upload: ChunksUpload, response: Response
) -> Stored:
    """Store several chunks at once, all or none: 201 where one of them is new, 200 where all are there already."""
    with store.write() as session:
        created = store_chunks(session, device_id, run_id, upload)
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    return Stored(outcome="created" if created else "unchanged")
