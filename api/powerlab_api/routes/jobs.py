"""The job queue: readable by everyone, leased by agents."""

from __future__ import annotations

import asyncio
import math
import time

from fastapi import APIRouter, Request, status
from fastapi.concurrency import run_in_threadpool

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import (
    Beat,
    Fence,
    Finish,
    JobStanding,
    Lease,
    LeaseReply,
    LeaseRequest,
    Meeting,
    RebootNotice,
)
from powerlab.protocol.records import JobPage, JobRecord, SweepState
from powerlab.store.reads.jobs import JobFilter, job, list_jobs
from powerlab.store.writes import backlogs, clusters, jobs
from powerlab_api.cursor import from_cursor
from powerlab_api.dependencies import Cursor, JobWatchDep, Limit, ReadSession, SettingsDep, StoreDep
from powerlab_api.job_watch import LOOK_EVERY_S
from powerlab_api.paging import cut
from powerlab_api.roles import AgentDevice, Requires

router = APIRouter(prefix="/jobs", tags=["jobs"])

_LONGEST_PAUSE_S = 5.0
"""How much later a job may begin than a booking of its device ends."""


@router.get("", dependencies=[Requires.viewer])
def read_queue(
    session: ReadSession,
    *,
    state: SweepState | None = None,
    device_id: str | None = None,
    sweep_id: str | None = None,
    submitter: str | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> JobPage:
    """Return jobs, newest first."""
    filters = JobFilter(
        state=state,
        device_id=device_id,
        sweep_id=sweep_id,
        submitter=submitter,
        limit=limit + 1,
        after=from_cursor(cursor),
    )
    items, more = cut(list_jobs(session, filters), limit, lambda one: (one.created_at, one.id))
    return JobPage(items=items, next_cursor=more)


@router.get("/{job_id}", dependencies=[Requires.viewer])
def read_job(session: ReadSession, job_id: str) -> JobRecord:
    """Return one job."""
    return job(session, job_id)


@router.post("/lease", dependencies=[Requires.agent])
async def lease_job(  # noqa: PLR0917 - what FastAPI fills in
    http: Request,
    store: StoreDep,
    settings: SettingsDep,
    watch: JobWatchDep,
    device_id: AgentDevice,
    request: LeaseRequest,
) -> LeaseReply:
    """Give the agent's device a job, waiting for one for a while."""

    def look() -> Lease | None:
        with store.session() as session:
            waiting = jobs.is_waiting(session, device_id, store.clock())
            if not waiting and not backlogs.is_news(session, device_id, request.backlog, store.clock()):
                return None
        with store.write() as session:
            backlogs.note(session, device_id, request.backlog, store.clock())
            return jobs.lease(session, device_id, store.clock(), settings.lease_s) if waiting else None

    if not math.isfinite(request.wait_s):
        raise PowerlabError("wait_s must be a finite number of seconds.")
    deadline = time.monotonic() + min(max(request.wait_s, 0.0), settings.max_lease_wait_s)
    gone = asyncio.ensure_future(_disconnected(http))
    pause_s = 0.0
    try:
        while True:
            lease = await run_in_threadpool(look)
            remaining = deadline - time.monotonic()
            if lease is not None or remaining <= pause_s:
                return LeaseReply(lease=lease)
            if pause_s:
                await asyncio.wait((gone,), timeout=pause_s)
            if not await watch.wait(device_id, remaining - pause_s, gone):
                return LeaseReply(lease=None)
            # Told of a job that may not be had yet, where a booking stands in its way, or of one that somebody was
            # quicker to take, an agent is told of the next later and later.
            pause_s = min(max(2 * pause_s, LOOK_EVERY_S), _LONGEST_PAUSE_S)
    finally:
        gone.cancel()


async def _disconnected(request: Request) -> None:
    """Return when whoever asked has gone: nobody would hold what they were given."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@router.post("/{job_id}/heartbeat", dependencies=[Requires.agent])
def hold_job(store: StoreDep, settings: SettingsDep, device_id: AgentDevice, job_id: str, beat: Beat) -> JobStanding:
    """Hold a job for another lease, say what its device waits for, and learn whether it is still wanted.

    Where the state is not ``running`` the agent ends the run in progress, uploads what it has, and releases the job.
    """
    with store.write() as session:
        state = jobs.heartbeat(
            session,
            device_id,
            job_id,
            beat.fencing_token,
            store.clock(),
            lease_s=settings.lease_s,
            waits=beat.waits,
        )
        backlogs.note(session, device_id, beat.backlog, store.clock())
        return JobStanding(state=state)


@router.post("/{job_id}/reboot", dependencies=[Requires.agent])
def announce_reboot(store: StoreDep, device_id: AgentDevice, job_id: str, notice: RebootNotice) -> JobStanding:
    """Hold a job while its device reboots into a power mode of the sweep, for half an hour at most.

    Where the state is not ``running`` the agent does not reboot, and releases the job.
    """
    with store.write() as session:
        return JobStanding(state=jobs.announce_reboot(session, device_id, job_id, notice, store.clock()))


@router.post("/{job_id}/meeting", dependencies=[Requires.agent], status_code=status.HTTP_204_NO_CONTENT)
def tell_meeting(store: StoreDep, device_id: AgentDevice, job_id: str, message: Meeting) -> None:
    """Say where the first device of a cluster waits for the others, which are given the job then."""
    with store.write() as session:
        job = jobs.held_job(session, device_id, job_id, message.fencing_token)
        clusters.meet(session, job, message.address, message.secret)


@router.post("/{job_id}/release", dependencies=[Requires.agent])
def release_job(store: StoreDep, device_id: AgentDevice, job_id: str, fence: Fence) -> JobStanding:
    """Let go of a job that is not finished; the answer says what became of it."""
    with store.write() as session:
        return JobStanding(state=jobs.release(session, device_id, job_id, fence.fencing_token, store.clock()))


@router.post("/{job_id}/finish", dependencies=[Requires.agent], status_code=status.HTTP_204_NO_CONTENT)
def finish_job(store: StoreDep, device_id: AgentDevice, job_id: str, message: Finish) -> None:
    """End a job."""
    with store.write() as session:
        jobs.finish(session, device_id, job_id, message, store.clock())
