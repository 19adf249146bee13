"""A server with too much to do, or an agent that asks too often: it comes when it was told to, and not before."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faults.agent_lives import BoardHost, runner
from faults.lives import PLAN, RUNS, content
from powerlab.access.limits import Limit, Limits
from powerlab.boards.simulator.tree import create_tree
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store, open_store
from powerlab.store.reads import queries
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from powerlab.sysroot import Sysroot
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.retry import Backoff
from powerlab_agent.room import Limits as RoomLimits
from powerlab_agent.spool import Spool
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from served import served
from server_examples import capabilities, device

REFUSALS = {503: 1, 429: 2}
"""How often the agent meets a full queue, and how often it is told that it asks too often."""
FEW = Limits(requests=Limit(burst=3, per_s=1))


@dataclass(frozen=True)
class Answer:
    """A request, with times of the monotonic clock."""

    came_s: float
    gone_s: float
    status: int
    rest_s: float


@dataclass
class Watched:
    """Real servers over one database: at first one whose queue is full, then one that counts requests, then any."""

    full: ASGIApp
    counting: ASGIApp
    patient: ASGIApp
    answers: list[Answer] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        came_s = time.monotonic()

        async def note(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.start":
                rest_s = float(dict(message["headers"]).get(b"retry-after", b"0"))
                self.answers.append(Answer(came_s, time.monotonic(), message["status"], rest_s))

        await self.turn()(scope, receive, note)

    def turn(self) -> ASGIApp:
        counts = Counter(answer.status for answer in self.answers)
        if counts[503] < REFUSALS[503]:
            return self.full
        return self.counting if counts[429] < REFUSALS[429] else self.patient


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "powerlab.db")) as store:
        yield store


@pytest.mark.campaign
def test_an_agent_comes_again_when_it_was_told_to_and_loses_nothing(store: Store, tmp_path: Path) -> None:
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device("board"), capabilities=capabilities())
        identity = enrol(session, request, store.clock())
    with store.write() as session:
        request = SweepRequest(device_id=identity.device_id, plan=PLAN)
        sweep_id = create_sweep(session, request, store.clock())
    create_tree("apm-xgene", tmp_path / "tree")
    before = content(tmp_path / "tree")
    behaviours = (Settings(most_waiting=0), Settings(limits=FEW), Settings())
    watched = Watched(*(create_app(store, settings) for settings in behaviours))
    app: Any = watched
    with served(app) as address, closing(Spool(tmp_path / "spool.db", RoomLimits(reserve_bytes=0))) as spool:
        client = Client(address, identity.token)
        Daemon(
            client=client,
            models=ModelCache(client, tmp_path / "models", 1_000_000),
            host=BoardHost(Sysroot(tmp_path / "tree"), tmp_path / "modes", "board"),
            spool=spool,
            once=True,
            runner=runner,
            backoff=Backoff(first_s=0.01, longest_s=0.05),
        ).run()
        assert (spool.next(), spool.held(), spool.refused()) == (None, None, {})
    with store.session() as session:
        assert queries.sweep(session, sweep_id).state is SweepState.DONE
        assert len({(run.point.id, run.repeat) for run in queries.runs_of_sweep(session, sweep_id)}) == RUNS
    assert content(tmp_path / "tree") == before
    told = [answer for answer in watched.answers if answer.status in REFUSALS]
    assert Counter(answer.status for answer in told) == REFUSALS
    for answer in told:
        assert answer.rest_s >= 1
        too_early = [one for one in watched.answers if answer.gone_s < one.came_s < answer.gone_s + answer.rest_s]
        assert too_early == []
    sys.stdout.write(f"told to come later: {REFUSALS}, of {len(watched.answers)} requests; none came before\n")
