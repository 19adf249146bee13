"""Leases that run out: what was measured meanwhile arrives once, whoever has the job by then."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import update

from agent_server import Server
from faults.lives import PLAN, RUNS, Lives, content, start_lives
from powerlab.domain.run import Run
from powerlab.protocol.messages import Fence, Lease
from powerlab.protocol.records import SweepState
from powerlab.store import Store, open_store
from powerlab.store.reads import queries
from powerlab.store.tables import JobRow
from powerlab.sweep.events import RunFinished
from powerlab_agent.client import Client, RefusedError
from powerlab_agent.spool import Spool
from powerlab_agent.uploader import LeaseLostError, Uploader
from server_examples import make_run, make_trace

FREEZES = int(os.environ.get("POWERLAB_FAULT_FREEZES", "2"))
PATIENCE_S = 120.0


def spooled(spool: Spool, sweep_id: str, token: int) -> list[Run]:
    runs = [make_run(sweep_id, PLAN.points()[0], repeat) for repeat in range(PLAN.repeats)]
    for run in runs:
        spool.add(RunFinished(run=run, traces=(make_trace(count=20),), index=1, run_count=RUNS), token)
    return runs


def arrived(stored: Store, sweep_id: str) -> list[str]:
    with stored.session() as session:
        return sorted(run.id for run in queries.runs_of_sweep(session, sweep_id))


def state_of(stored: Store, sweep_id: str) -> SweepState:
    with stored.session() as session:
        return queries.sweep(session, sweep_id).state


@pytest.fixture(scope="module")
def lender(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with leases of the usual length: none runs out that the test does not end."""
    server = Server(database=tmp_path_factory.mktemp("lender") / "powerlab.db")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def kept(lender: Server) -> Iterator[Store]:
    """Its database."""
    with closing(open_store(lender.database)) as store:
        yield store


def let_run_out(kept: Store, lease: Lease) -> None:
    with kept.write() as session:
        ended = kept.clock() - timedelta(seconds=1)
        session.execute(update(JobRow).where(JobRow.id == lease.job_id).values(deadline=ended))


@pytest.fixture
def client(lender: Server) -> Client:
    identity = lender.enrol()
    client = Client(lender.url, identity.token)
    client.identity = identity
    return client


def test_a_lease_that_ran_out_and_that_nobody_took(lender: Server, kept: Store, client: Any, tmp_path: Path) -> None:
    sweep_id = lender.create_sweep(client.identity, PLAN)
    lease = client.lease(0.0)
    with closing(Spool(tmp_path / "spool.db")) as spool:
        runs = spooled(spool, sweep_id, lease.fencing_token)
        let_run_out(kept, lease)
        Uploader(client, spool).upload_all(lease)
        client.heartbeat(lease.job_id, lease.fencing_token)
    assert arrived(kept, sweep_id) == sorted(run.id for run in runs)


def test_the_same_device_took_the_job_again(lender: Server, kept: Store, client: Any, tmp_path: Path) -> None:
    """Its earlier life measured under a token that is over: the results go out under the new one."""
    sweep_id = lender.create_sweep(client.identity, PLAN)
    old = client.lease(0.0)
    with closing(Spool(tmp_path / "spool.db")) as spool:
        spool.hold(old)
        runs = spooled(spool, sweep_id, old.fencing_token)
        let_run_out(kept, old)
        new = client.lease(0.0)
        assert (new.sweep_id, new.fencing_token > old.fencing_token) == (sweep_id, True)
        with pytest.raises(LeaseLostError):
            Uploader(client, spool).upload_all(old)
        spool.hold(new)
        assert len(spool.done(sweep_id)) == RUNS, "nothing is measured twice"
        Uploader(client, spool).upload_all(new)
        assert spool.next() is None
    assert arrived(kept, sweep_id) == sorted(run.id for run in runs)


def test_results_that_were_refused_between_two_leases_are_not_lost(
    lender: Server, kept: Store, client: Any, tmp_path: Path
) -> None:
    """Another agent of the device took the job and gave it back; meanwhile this one had tried, and had another job."""
    first = lender.create_sweep(client.identity, PLAN)
    old = client.lease(0.0)
    with closing(Spool(tmp_path / "spool.db")) as spool:
        runs = spooled(spool, first, old.fencing_token)
        let_run_out(kept, old)
        others = client.lease(0.0)
        second = lender.create_sweep(client.identity, PLAN)
        Uploader(client, spool).upload_all(client.lease(0.0))
        assert {refused.kind for refused in spool.refused().values()} == {"stale-lease"}
        client.release(others.job_id, others.fencing_token)
        again = client.lease(0.0)
        assert again.sweep_id == first
        spool.hold(again)
        Uploader(client, spool).upload_all(again)
        assert (spool.next(), spool.refused()) == (None, {})
    assert arrived(kept, first) == sorted(run.id for run in runs)
    assert arrived(kept, second) == []


def test_what_another_agent_measured_is_not_stored_twice(
    lender: Server, kept: Store, client: Any, tmp_path: Path
) -> None:
    sweep_id = lender.create_sweep(client.identity, PLAN)
    old = client.lease(0.0)
    with closing(Spool(tmp_path / "mine.db")) as mine, closing(Spool(tmp_path / "theirs.db")) as theirs:
        spooled(mine, sweep_id, old.fencing_token)
        let_run_out(kept, old)
        new = client.lease(0.0)
        runs = spooled(theirs, sweep_id, new.fencing_token)
        Uploader(client, theirs).upload_all(new)
        Uploader(client, mine).upload_all(new)
        assert {refused.kind for refused in mine.refused().values()} == {"conflict"}
    assert arrived(kept, sweep_id) == sorted(run.id for run in runs)
    with pytest.raises(RefusedError, match="given out again"):
        client._send("POST", f"/jobs/{old.job_id}/release", Fence(fencing_token=old.fencing_token))


def freeze(lives: Lives, after_s: float) -> psutil.Process | None:
    """Stop the agent's process in the middle of its life; None where it was over before."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            (agent,) = psutil.Process(lives.process.pid).children()
            time.sleep(after_s)
            agent.send_signal(signal.SIGSTOP)
        except (ValueError, psutil.NoSuchProcess):
            if lives.has_ended():
                return None
            time.sleep(0.001)
            continue
        return agent
    raise AssertionError("the agent did not start")


def test_two_agents_with_one_token(server: Any, stored: Store, shim: Any, tmp_path: Path) -> None:
    """One freezes past its lease, the other takes the job, and the first one wakes up."""
    identity = server.enrol()
    frozen = 0
    with (
        start_lives(shim, identity, tmp_path / "a") as first,
        start_lives(shim, identity, tmp_path / "b") as second,
    ):
        for number in range(FREEZES):
            sweep_id = server.create_sweep(identity, PLAN)
            first.start()
            agent = freeze(first, 0.03 * (number + 1))
            frozen += agent is not None
            second.finish(stored, sweep_id)
            if agent is not None:
                agent.send_signal(signal.SIGCONT)
            assert first.ended()[0] == 0
            assert len(arrived(stored, sweep_id)) == RUNS
            assert state_of(stored, sweep_id) is SweepState.DONE
            for lives in (first, second):
                assert content(lives.tree) == lives.before
                with closing(Spool(lives.state / "spool.db")) as spool:
                    assert spool.next() is None
                    assert {one.kind for one in spool.refused().values()} <= {"stale-lease", "conflict"}
    assert frozen
    sys.stdout.write(f"{frozen} agents frozen past their lease\n")
