"""Agents that wait for jobs: many at once, woken when there is one; and what a server says that has too much to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import delete
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionError
from sqlalchemy.orm import Session

import own_loop
from bench.service.http import Connection
from fresh_store import fresh_store
from powerlab.protocol.bookings import BookingKind
from powerlab.protocol.messages import (
    EnrolmentCodeRequest,
    EnrolReply,
    EnrolRequest,
    LeaseReply,
    LeaseRequest,
    SweepRequest,
)
from powerlab.protocol.wire import decode
from powerlab.store import Store
from powerlab.store.database import CONNECTIONS
from powerlab.store.tables import BookingRow
from powerlab.store.writes import jobs
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from powerlab_api.app import create_app
from powerlab_api.job_watch import JobWatch
from powerlab_api.settings import Settings
from served import served
from server_examples import PLAN, capabilities, device


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = fresh_store(tmp_path / "powerlab.db")
    yield store
    store.close()


def enrolled(store: Store, name: str) -> EnrolReply:
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        return enrol(session, EnrolRequest(code=code, device=device(name), capabilities=capabilities()), store.clock())


def queue_sweep(store: Store, device_id: str) -> str:
    with store.write() as session:
        return create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())


@pytest.mark.campaign
def test_more_agents_wait_than_there_are_threads_and_each_gets_its_own_job(store: Store) -> None:
    agents = [enrolled(store, f"board-{number}") for number in range(2 * CONNECTIONS + 5)]

    async def scene(url: str) -> None:
        connections = [Connection(url, one.token) for one in agents]
        asked = [asyncio.create_task(one.ask("POST", "/jobs/lease", LeaseRequest(wait_s=30.0))) for one in connections]
        person = Connection(url)
        for _ in range(20):  # all of them wait by now, or their turn would not have come before these
            assert (await person.ask("GET", "/devices?limit=1")).status == 200
        assert not any(one.done() for one in asked)
        for agent, answer in reversed(list(zip(agents, asked, strict=True))):
            sweep_id = await asyncio.to_thread(queue_sweep, store, agent.device_id)
            lease = decode((await answer).body, LeaseReply).lease
            assert lease is not None
            assert lease.sweep_id == sweep_id
        for one in (person, *connections):
            one.cut()

    with served(create_app(store)) as url:
        own_loop.run(scene(url))


def test_of_two_that_wait_for_one_device_one_gets_the_job(store: Store) -> None:
    agent = enrolled(store, "board-1")

    async def scene(url: str) -> list[bool]:
        connections = [Connection(url, agent.token) for _ in range(2)]
        request = LeaseRequest(wait_s=1.0)
        asked = [asyncio.create_task(one.ask("POST", "/jobs/lease", request)) for one in connections]
        await asyncio.to_thread(queue_sweep, store, agent.device_id)
        answers = [decode((await one).body, LeaseReply) for one in asked]
        for one in connections:
            one.cut()
        return sorted(answer.lease is None for answer in answers)

    with served(create_app(store)) as url:
        assert own_loop.run(scene(url)) == [False, True]


def test_a_booked_device_is_asked_for_less_and_less_and_has_its_job_when_the_booking_ends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = enrolled(store, "board-1")
    sweep_id = queue_sweep(store, agent.device_id)
    with store.write() as session:
        session.add(maintenance(agent.device_id, store.clock()))
    looks: list[str] = []

    def counted(session: Session, device_id: str, now: datetime) -> bool:
        looks.append(device_id)
        return is_waiting(session, device_id, now)

    is_waiting = jobs.is_waiting
    monkeypatch.setattr(jobs, "is_waiting", counted)

    async def scene(url: str) -> None:
        connection = Connection(url, agent.token)
        answer = await connection.ask("POST", "/jobs/lease", LeaseRequest(wait_s=1.5))
        assert decode(answer.body, LeaseReply).lease is None
        # Without pauses there would be eight.
        assert 2 <= len(looks) <= 5
        asked = asyncio.create_task(connection.ask("POST", "/jobs/lease", LeaseRequest(wait_s=30.0)))
        while len(looks) < 8:
            await asyncio.sleep(0.05)
        await asyncio.to_thread(end_bookings, store)
        lease = decode((await asked).body, LeaseReply).lease
        assert lease is not None
        assert lease.sweep_id == sweep_id
        connection.cut()

    with served(create_app(store)) as url:
        own_loop.run(scene(url))


def maintenance(device_id: str, now: datetime) -> BookingRow:
    return BookingRow(
        device_id=device_id,
        kind=BookingKind.MAINTENANCE.value,
        starts_at=now,
        ends_at=now + timedelta(hours=1),
        holder=None,
        reason="a new fan",
        made_by="somebody",
        made_at=now,
    )


def end_bookings(store: Store) -> None:
    with store.write() as session:
        session.execute(delete(BookingRow))


def test_a_job_is_not_given_to_an_agent_that_has_gone(store: Store) -> None:
    agent = enrolled(store, "board-1")

    async def scene(url: str) -> LeaseReply:
        request = LeaseRequest(wait_s=30.0)
        gone, back = Connection(url, agent.token), Connection(url, agent.token)
        asked = asyncio.create_task(gone.ask("POST", "/jobs/lease", request))
        while not watch._waiting:
            await asyncio.sleep(0.01)
        asked.cancel()
        while watch._waiting:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(queue_sweep, store, agent.device_id)
        answer = decode((await back.ask("POST", "/jobs/lease", request)).body, LeaseReply)
        back.cut()
        return answer

    app = create_app(store)
    watch = app.state.job_watch
    with served(app) as url:
        assert own_loop.run(scene(url)).lease is not None


def test_who_waits_learns_that_the_database_failed(store: Store) -> None:
    class Failing(Store):
        @contextmanager
        def session(self) -> Iterator[Session]:
            raise OperationalError("SELECT", {}, Exception("gone"))
            yield

    watch = JobWatch(Failing(engine=store.engine, address=store.address))

    async def scene() -> list[BaseException | bool]:
        never: asyncio.Future[None] = asyncio.Future()
        return await asyncio.gather(*(watch.wait(name, 30.0, never) for name in "abc"), return_exceptions=True)

    assert [type(one) for one in own_loop.run(scene())] == [OperationalError] * 3


def test_nobody_looks_when_nobody_waits(store: Store) -> None:
    async def scene() -> None:
        watch, never = JobWatch(store), asyncio.Future()
        assert not await watch.wait("nobody", 0.01, never)
        assert watch._waiting == {}
        await watch._looking
        never.set_result(None)
        assert not await watch.wait("nobody", 30.0, never)

    own_loop.run(scene())


def test_a_server_whose_queue_is_full_says_when_to_come_again(store: Store) -> None:
    with TestClient(create_app(store, Settings(most_waiting=0))) as client:
        reply = client.get("/api/v1/devices")
        assert reply.status_code == 503
        assert 1 <= int(reply.headers["retry-after"]) <= 3
        assert reply.json()["type"].endswith("/busy")
        assert client.get("/metrics").status_code == 200


def test_no_free_connection_is_no_error_of_the_servers(store: Store) -> None:
    class Busy(Store):
        @contextmanager
        def session(self) -> Iterator[Session]:
            raise NoConnectionError("QueuePool limit reached")
            yield

    with TestClient(create_app(Busy(engine=store.engine, address=store.address))) as client:
        reply = client.get("/api/v1/devices")
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "2"
    assert "in use" in reply.json()["detail"]
