"""An agent that speaks the whole protocol and measures nothing; and all that may happen to one."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from bench.service.http import Answer, Connection, NoAnswerError
from bench.service.ledger import Ledger
from bench.service.recordings import CHUNKS, new_run
from powerlab.domain.run import Run
from powerlab.protocol.messages import (
    ChunksUpload,
    Fence,
    Finish,
    JobStanding,
    Lease,
    LeaseReply,
    LeaseRequest,
    Problem,
    RunUpload,
    Stored,
)
from powerlab.protocol.wire import decode
from powerlab_agent.retry import Backoff

T = TypeVar("T")


class DiedError(Exception):
    """The agent was killed; ``remembers`` says whether its disk outlived it."""

    def __init__(self, *, remembers: bool) -> None:
        super().__init__()
        self.remembers = remembers


class RefusedError(Exception):
    """The server said no, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How an agent lives.

    Attributes:
        run_s: how long a run takes, on average; each is drawn anew.
        wait_s: how long it asks the server to wait for a job.
        death: chance to be killed at each of a job's steps.
        forgets: chance that it lost its disk where it was killed.
        away_s: how long it is away then, on average.
        repeats: chance to send an upload twice.
    """

    run_s: float = 2.0
    wait_s: float = 30.0
    death: float = 0.01
    forgets: float = 0.3
    away_s: float = 2.0
    repeats: float = 0.05


class SimulatedAgent:
    """One device; ``live`` ends when it is cancelled."""

    def __init__(self, url: str, token: str, habits: Habits, ledger: Ledger, random: Random) -> None:
        self._server = Connection(url, token)
        self._habits = habits
        self._ledger = ledger
        self._random = random
        self._backoff = Backoff(random=random)
        self._asked_at = 0.0
        self._held: Lease | None = None
        self._spooled: list[Run] = []

    async def live(self) -> None:
        """Ask for jobs and carry them out, and be killed now and then."""
        while True:
            try:
                lease = await self._lease()
                if lease is not None:
                    await self._carry_out(lease)
            except DiedError as death:
                await self._rise_again(remembers=death.remembers)

    def leave(self) -> None:
        """Cut the connection."""
        self._server.cut()

    async def _rise_again(self, *, remembers: bool) -> None:
        self._server.cut()
        self._ledger.events["killed" if remembers else "killed, disk lost"] += 1
        before, late = self._held, list(self._spooled)
        await asyncio.sleep(self._random.expovariate(1 / self._habits.away_s))
        if remembers and before is not None:
            await self._carry_out_again(before)
            return
        self._spooled.clear()
        if before is None:
            return
        # Without its disk the device asks anew, and is given the job again once the lease has run out; what its former
        # life still had in a queue somewhere comes late, under a token that is not the newest any more.
        while (lease := await self._lease()) is None:
            pass
        if lease.sweep_id == before.sweep_id:
            for run in late or [new_run(before.sweep_id, before.plan.points()[0], 0)]:
                await self._send_late(RunUpload(fencing_token=before.fencing_token, run=run))
        try:
            await self._carry_out(lease)
        except DiedError as death:
            await self._rise_again(remembers=death.remembers)

    async def _carry_out_again(self, lease: Lease) -> None:
        try:
            fence = Fence(fencing_token=lease.fencing_token)
            await self._ask("POST", f"/jobs/{lease.job_id}/heartbeat", fence, JobStanding)
            await self._carry_out(lease)
        except RefusedError:
            self._ledger.events["job was over at return"] += 1
            self._spooled.clear()
        except DiedError as death:
            await self._rise_again(remembers=death.remembers)

    async def _send_late(self, upload: RunUpload) -> None:
        try:
            await self._ask("PUT", f"/runs/{upload.run.id}", upload, Stored)
            self._ledger.events["late upload taken"] += 1
        except RefusedError:
            self._ledger.events["late upload refused"] += 1

    async def _lease(self) -> Lease | None:
        self._held = None
        wait_s = self._habits.wait_s * self._random.uniform(0.8, 1.0)
        lease = (await self._ask("POST", "/jobs/lease", LeaseRequest(wait_s=wait_s), LeaseReply)).lease
        self._held = lease
        if lease is not None:
            self._ledger.leased(lease.sweep_id, self._asked_at, time.monotonic())
        return lease

    async def _carry_out(self, lease: Lease) -> None:
        heart = asyncio.create_task(self._beat(lease))
        try:
            done = {(one.point_id, one.repeat) for one in lease.done}
            for run in self._spooled:
                await self._upload(lease, run)
                done.add((run.point.id, run.repeat))
            self._spooled.clear()
            for point in lease.plan.points():
                for repeat in range(lease.plan.repeats):
                    if (point.id, repeat) not in done:
                        await self._measure(lease, new_run(lease.sweep_id, point, repeat))
            self._perhaps_die()
            message = Finish(fencing_token=lease.fencing_token, state="done")
            await self._twice(f"/jobs/{lease.job_id}/finish", message)
            self._ledger.finished[lease.sweep_id] += 1
            self._held = None
        finally:
            heart.cancel()

    async def _measure(self, lease: Lease, run: Run) -> None:
        self._perhaps_die()
        await asyncio.sleep(self._random.uniform(0.5, 1.5) * self._habits.run_s)
        self._spooled.append(run)
        self._perhaps_die()
        await self._upload(lease, run)
        self._spooled.clear()

    async def _upload(self, lease: Lease, run: Run) -> None:
        token = lease.fencing_token
        await self._twice(f"/runs/{run.id}", RunUpload(fencing_token=token, run=run), Stored, "PUT")
        self._ledger.runs.setdefault((run.sweep_id, run.point.id, run.repeat), set()).add(run.id)
        self._perhaps_die()
        await self._twice(f"/runs/{run.id}/traces/chunks", ChunksUpload(fencing_token=token, chunks=CHUNKS))
        self._ledger.chunks[run.id] = len(CHUNKS)

    def _perhaps_die(self) -> None:
        if self._random.random() < self._habits.death:
            raise DiedError(remembers=self._random.random() >= self._habits.forgets)

    async def _twice(self, path: str, message: object, kind: type[T] | None = None, method: str = "POST") -> None:
        """Send a message, and now and then once more, as where an answer was lost."""
        await self._ask(method, path, message, kind)
        if self._random.random() < self._habits.repeats:
            self._ledger.events["sent twice"] += 1
            await self._ask(method, path, message, kind)

    async def _beat(self, lease: Lease) -> None:
        fence = Fence(fencing_token=lease.fencing_token)
        try:
            while True:
                await asyncio.sleep(lease.lease_s / 3 * self._random.uniform(0.9, 1.0))
                await self._ask("POST", f"/jobs/{lease.job_id}/heartbeat", fence, JobStanding)
        except RefusedError:
            self._ledger.events["heartbeat refused"] += 1

    async def _ask(self, method: str, path: str, message: object, kind: type[T] | None) -> T:
        """Ask until there is an answer; raises RefusedError where it is no."""
        what = f"{method} {_pattern(path)}"
        self._asked_at = time.monotonic()
        while True:
            began = time.monotonic()
            self._ledger.events["requests"] += 1
            try:
                answer = await self._server.ask(method, path, message)
            except NoAnswerError:
                self._ledger.events["no answer"] += 1
                await asyncio.sleep(self._backoff.failed())
                self._asked_at = time.monotonic()
                continue
            if answer.status == 429 or answer.status >= 500:
                self._ledger.events[f"status {answer.status}"] += 1
                await asyncio.sleep(self._backoff.failed(answer.retry_after_s or 0.0))
                continue
            self._backoff.worked()
            self._ledger.took_s.setdefault(what, []).append(time.monotonic() - began)
            return _read(answer, kind)


def _read(answer: Answer, kind: type[T] | None) -> T:
    if answer.status >= 400:
        raise RefusedError(decode(answer.body, Problem).detail)
    return decode(answer.body, kind) if kind is not None else None  # type: ignore[return-value]


def _pattern(path: str) -> str:
    return "/".join("{id}" if len(part) == 36 else part for part in path.split("/"))
