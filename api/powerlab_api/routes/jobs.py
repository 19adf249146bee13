"""Leases of jobs, for agents."""

from __future__ import annotations

import asyncio
import math
import time

from fastapi import APIRouter, status
from fastapi.concurrency import run_in_threadpool

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Fence, Finish, Lease, LeaseReply, LeaseRequest
from powerlab.store.writes import jobs
from powerlab_api.deps import AgentDevice, SettingsDep, StoreDep

router = APIRouter(prefix="/jobs", tags=["jobs"])

_POLL_S = 0.5
"""How often a waiting lease request looks; any server process may have created the job, so it asks the database."""


@router.post("/lease")
async def lease_job(
    store: StoreDep, settings: SettingsDep, device_id: AgentDevice, request: LeaseRequest
) -> LeaseReply:
    """Give the agent's device a job, waiting for one for a while.

    Waits on the event loop: a hundred idle agents must not hold the threads that the other routes run in.
    """

    def look() -> Lease | None:
        with store.session() as session:
            if not jobs.is_waiting(session, device_id, store.clock()):
                return None
        with store.write() as session:
            return jobs.lease(session, device_id, store.clock(), settings.lease_s)

    if not math.isfinite(request.wait_s):
        raise PowerlabError("wait_s must be a finite number of seconds.")
    deadline = time.monotonic() + min(max(request.wait_s, 0.0), settings.max_lease_wait_s)
    while True:
        lease = await run_in_threadpool(look)
        remaining = deadline - time.monotonic()
        if lease is not None or remaining <= 0:
            return LeaseReply(lease=lease)
        await asyncio.sleep(min(_POLL_S, remaining))


@router.post("/{job_id}/heartbeat", status_code=status.HTTP_204_NO_CONTENT)
def hold_job(store: StoreDep, settings: SettingsDep, device_id: AgentDevice, job_id: str, fence: Fence) -> None:
    """Hold a job for another lease."""
    with store.write() as session:
        jobs.heartbeat(session, device_id, job_id, fence.fencing_token, store.clock(), lease_s=settings.lease_s)


@router.post("/{job_id}/release", status_code=status.HTTP_204_NO_CONTENT)
def release_job(store: StoreDep, device_id: AgentDevice, job_id: str, fence: Fence) -> None:
    """Give a job back unfinished."""
    with store.write() as session:
        jobs.release(session, device_id, job_id, fence.fencing_token, store.clock())


@router.post("/{job_id}/finish", status_code=status.HTTP_204_NO_CONTENT)
def finish_job(store: StoreDep, device_id: AgentDevice, job_id: str, message: Finish) -> None:
    """End a job."""
    with store.write() as session:
        jobs.finish(session, device_id, job_id, message, store.clock())
