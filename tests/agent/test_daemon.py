"""No run is lost and none is doubled, whoever is killed and whenever."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from forked_program import run_forked
from powerlab.protocol.records import SweepState
from powerlab.store import open_store
from powerlab.store.tables import JobRow, TokenRow
from powerlab.store.writes.jobs import lease
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity
from server_examples import PLAN

ALL = len(PLAN.points()) * PLAN.repeats
Start = Callable[[], Any]


def wanted() -> set[tuple[str, int]]:
    return {(point.id, repeat) for point in PLAN.points() for repeat in range(PLAN.repeats)}


def check_complete(server: Any, sweep_id: str) -> None:
    runs = server.runs(sweep_id)
    assert len(runs) == ALL
    assert {(run.point.id, run.repeat) for run in runs} == wanted()
    assert server.trace_counts(sweep_id) == [1] * ALL
    assert server.sweep(sweep_id).state is SweepState.DONE


def waiting(state: Path) -> bool:
    with closing(Spool(state / "spool.db")) as spool:
        return spool.next() is not None


def test_a_sweep_is_taken_run_and_uploaded(server: Any, sweep_id: str, state: Path, start_agent: Start) -> None:
    agent = start_agent()
    agent.measure(1)
    more, log = agent.finish()
    assert more == ALL - 1
    assert "all too short." in log
    check_complete(server, sweep_id)
    assert not waiting(state)


@pytest.mark.campaign(minutes=1)
def test_the_server_is_killed_and_comes_back(server: Any, sweep_id: str, state: Path, start_agent: Start) -> None:
    agent = start_agent()
    agent.measure(4)
    server.kill()
    for _ in range(5):
        agent.go_on()
        assert agent.wait_for_run()
    assert len(server.runs(sweep_id)) == 4
    assert waiting(state)
    server.start()
    assert agent.finish()[0] == ALL - 9
    check_complete(server, sweep_id)


@pytest.mark.campaign(minutes=1)
def test_the_server_comes_back_after_the_last_run(server: Any, sweep_id: str, start_agent: Start) -> None:
    agent = start_agent()
    agent.measure(1)
    server.kill()
    for _ in range(ALL - 1):
        agent.go_on()
        assert agent.wait_for_run()
    agent.go_on()
    server.start()
    _, log = agent.process.communicate(timeout=60)
    assert agent.process.returncode == 0, log
    check_complete(server, sweep_id)


def test_the_agent_is_killed_and_started_again(server: Any, sweep_id: str, start_agent: Start) -> None:
    first = start_agent()
    first.measure(5)
    first.process.kill()
    first.process.wait()
    second = start_agent()
    second.measure(1)
    assert second.finish()[0] == ALL - 5 - 1
    check_complete(server, sweep_id)


@pytest.mark.campaign(minutes=1)
def test_both_are_killed(server: Any, sweep_id: str, state: Path, start_agent: Start) -> None:
    first = start_agent()
    first.measure(3)
    server.kill()
    for _ in range(4):
        first.go_on()
        assert first.wait_for_run()
    first.process.kill()
    first.process.wait()
    assert waiting(state)
    server.start()
    second = start_agent()
    second.measure(1)
    assert second.finish()[0] == ALL - 7 - 1
    check_complete(server, sweep_id)


@pytest.mark.campaign(minutes=1)
def test_sigterm_drains_and_gives_the_job_back(server: Any, sweep_id: str, state: Path, start_agent: Start) -> None:
    agent = start_agent()
    agent.measure(2)
    agent.process.send_signal(signal.SIGTERM)
    assert agent.finish()[0] == 0
    assert len(server.runs(sweep_id)) == 2
    assert server.sweep(sweep_id).state is SweepState.QUEUED
    assert not waiting(state)
    again = start_agent()
    again.measure(1)
    assert again.finish()[0] == ALL - 3
    check_complete(server, sweep_id)


@pytest.mark.campaign(minutes=1)
def test_sigterm_while_the_server_is_away_keeps_everything(
    server: Any, sweep_id: str, state: Path, start_agent: Start
) -> None:
    agent = start_agent()
    agent.measure(2)
    server.kill()
    agent.go_on()
    assert agent.wait_for_run()
    agent.process.send_signal(signal.SIGTERM)
    _, log = agent.finish()
    assert "stopped while the server was away" in log
    server.start()
    again = start_agent()
    again.measure(1)
    again.finish()
    check_complete(server, sweep_id)


def test_a_sweep_that_goes_on_is_over_when_it_says_so(server: Any, identity: Identity, start_agent: Start) -> None:
    """Told to stop when the planned runs are all made: the job is given back, and the next life goes on."""
    sweep_id = server.create_sweep(identity, replace(PLAN, until_percent=1.0))
    agent = start_agent()
    agent.measure(ALL)
    agent.process.send_signal(signal.SIGTERM)
    more, log = agent.finish()
    assert more == 0
    assert "is given back unfinished" in log
    assert server.sweep(sweep_id).state is SweepState.QUEUED
    again = start_agent()
    again.measure(1)
    more, log = again.finish()
    assert (more, "Once more." in log) == (1, True)
    record = server.sweep(sweep_id)
    assert record.state is SweepState.DONE
    assert len(server.runs(sweep_id)) == record.planned_run_count == record.stored_run_count == ALL + 2


def test_a_search_is_done_with_the_runs_it_made(server: Any, identity: Identity, start_agent: Start) -> None:
    sweep_id = server.create_sweep(identity, replace(PLAN, search_percent=1.0))
    assert server.sweep(sweep_id).planned_run_count == ALL
    agent = start_agent()
    agent.measure(6)
    more, log = agent.finish()
    assert (more, "2 points measured; stopped because that is enough." in log) == (0, True)
    record = server.sweep(sweep_id)
    assert record.state is SweepState.DONE
    assert record.planned_run_count == record.stored_run_count == 6 < ALL


def test_a_job_given_to_somebody_else_is_left_alone(
    server: Any, identity: Identity, sweep_id: str, state: Path, start_agent: Start
) -> None:
    agent = start_agent()
    agent.measure(2)
    with closing(open_store(server.database)) as store, store.write() as session:
        later = store.clock() + timedelta(hours=1)
        assert lease(session, identity.device_id, later, lease_s=7200).fencing_token == 2
    more, log = agent.finish()
    assert more <= 1
    assert "given to somebody else" in log
    assert len(server.runs(sweep_id)) == 2
    with closing(Spool(state / "spool.db")) as spool:
        (reason,) = spool.refused().values()
    assert "given out again" in reason.reason
    with closing(open_store(server.database)) as store, store.session() as session:
        assert session.scalars(select(JobRow.fencing_token).where(JobRow.sweep_id == sweep_id)).one() == 2


@pytest.mark.parametrize(("seed", "words"), [(13, "thirteen is not measured here"), (14, "ZeroDivisionError")])
def test_a_sweep_that_cannot_be_carried_out_fails_with_its_reason(
    server: Any, identity: Identity, start_agent: Start, seed: int, words: str
) -> None:
    sweep_id = server.create_sweep(identity, replace(PLAN, seed=seed))
    assert start_agent().finish()[0] == 0
    record = server.sweep(sweep_id)
    assert (record.state, record.stored_run_count) == (SweepState.FAILED, 0)
    assert words in record.detail


def test_a_revoked_token_ends_the_agent_with_a_sentence(server: Any, identity: Identity, state: Path) -> None:
    with closing(open_store(server.database)) as store, store.write() as session:
        mine = select(TokenRow).where(TokenRow.device_id == identity.device_id)
        session.scalars(mine).one().revoked_at = store.clock()
    done = run_forked(["-m", "powerlab.cli", "agent", "run", "--once", "--state", state], timeout=60)
    assert done.returncode == 2
    assert "enrol the device again" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
