"""A fleet of simulated agents at one server, with jobs for all of them and a server that is killed on the way."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass, field
from random import Random

from bench.service.agent import Habits, SimulatedAgent
from bench.service.http import Connection, NoAnswerError
from bench.service.ledger import Ledger
from bench.service.recordings import PLAN
from bench.service.server import Server
from powerlab.protocol.messages import EnrolmentCode, EnrolReply, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.wire import decode
from server_examples import capabilities, device

_HANDS = 8
"""Requests of people at the same time: enrolment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How much, and how long.

    Attributes:
        agents: devices.
        jobs: sweeps that are submitted, one after the other, each to a device of its own turn.
        over_s: how long submitting takes.
        start_s: over how long the agents come, before the first job is submitted.
        kill: whether the server is killed when half of them are submitted, and started again at once.
        patience_s: how long the jobs may take after the last was submitted.
        habits: of each agent.
        seed: makes the fleet's dice repeatable.
    """

    agents: int
    jobs: int
    over_s: float
    start_s: float = 2.0
    kill: bool = True
    patience_s: float = 240.0
    habits: Habits = field(default_factory=Habits)
    seed: int = 1


async def unleash(server: Server, load: Load) -> Ledger:
    """Enrol a fleet, let it live until every job is finished, and return what it knows.

    Raises:
        TimeoutError: jobs are left.
    """
    ledger, random = Ledger(), Random(load.seed)
    who = await _enrol(server.url, load.agents)
    agents = [SimulatedAgent(server.url, one.token, load.habits, ledger, Random(random.random())) for one in who]
    lives = [asyncio.create_task(_late_start(agent, random.uniform(0.0, load.start_s))) for agent in agents]
    try:
        await _first_of(asyncio.create_task(asyncio.sleep(load.start_s)), lives)
        submitting = asyncio.create_task(_submit(server, load, [one.device_id for one in who], ledger))
        await _first_of(submitting, lives)
        async with asyncio.timeout(load.patience_s):
            while len(ledger.finished) < load.jobs:
                await _first_of(asyncio.create_task(asyncio.sleep(0.2)), lives)
    finally:
        for life in lives:
            life.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        for agent in agents:
            agent.leave()
        await asyncio.sleep(0)  # connections that were cut are closed by the loop
    return ledger


async def _late_start(agent: SimulatedAgent, after_s: float) -> None:
    await asyncio.sleep(after_s)
    await agent.live()


async def _first_of(task: asyncio.Task[None], lives: list[asyncio.Task[None]]) -> None:
    """Wait for a task; an agent that ends meanwhile met what it does not understand, and raises it here."""
    done, _ = await asyncio.wait([task, *lives], return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    if task not in done:
        await task


async def _enrol(url: str, count: int) -> list[EnrolReply]:
    numbers = iter(range(count))
    found: list[EnrolReply] = []

    async def hand() -> None:
        connection = Connection(url)
        for number in numbers:
            code = decode((await connection.ask("POST", "/enrolment-codes", {})).body, EnrolmentCode).code
            connection.cut()  # on a busy machine the server may close a kept one first, and a code is used only once
            request = EnrolRequest(code=code, device=device(f"board-{number:04}"), capabilities=capabilities())
            found.append(decode((await connection.ask("POST", "/agents", request)).body, EnrolReply))
            connection.cut()

    await asyncio.gather(*(hand() for _ in range(_HANDS)))
    return found


async def _submit(server: Server, load: Load, device_ids: list[str], ledger: Ledger) -> None:
    """Put sweeps under identifiers of their own, so that sending one again after a cut makes no second."""
    random, connection = Random(load.seed + 1), Connection(server.url)
    for number in range(load.jobs):
        if load.kill and number == load.jobs // 2:
            connection.cut()
            await asyncio.to_thread(_kill_and_start, server)
        request = SweepRequest(device_id=device_ids[number % len(device_ids)], plan=PLAN)
        await _put_sweep(connection, _uuid(random), request, ledger)
        await asyncio.sleep(random.expovariate(load.jobs / load.over_s))
    connection.cut()


def _kill_and_start(server: Server) -> None:
    server.kill()
    server.start()


async def _put_sweep(connection: Connection, sweep_id: str, request: SweepRequest, ledger: Ledger) -> None:
    while True:
        ledger.submitted[sweep_id] = time.monotonic()
        try:
            answer = await connection.ask("PUT", f"/sweeps/{sweep_id}", request)
            if answer.status not in (429, 503):
                decode(answer.body, SweepRecord)
                return
        except NoAnswerError:
            pass
        await asyncio.sleep(0.2)


def _uuid(random: Random) -> str:
    return str(uuid.UUID(int=random.getrandbits(128), version=4))
