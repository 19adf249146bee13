"""A sweep is paused and cancelled while its agent carries it out: nothing is lost, nothing is measured twice."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forked_program import ForkedProgram, run_forked
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord, SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.writes import control
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from powerlab.sweep.events import RunFinished
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity
from quick_server import quick_server
from server_examples import PLAN, capabilities, device, make_run

pytestmark = pytest.mark.campaign(minutes=1)

ALL = len(PLAN.points()) * PLAN.repeats
Change = Callable[..., None]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    with quick_server(tmp_path_factory.mktemp("quick") / "powerlab.db") as found:
        yield found


@pytest.fixture
def store(quick: tuple[str, Store]) -> Store:
    return quick[1]


@pytest.fixture
def identity(quick: tuple[str, Store], tmp_path: Path) -> Identity:
    address, store = quick
    name = tmp_path.name
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
        reply = enrol(session, request, store.clock())
    return Identity(server=address, device_id=reply.device_id, device_name=name, token=reply.token)


@pytest.fixture
def sweep_id(store: Store, identity: Identity) -> str:
    return submit(store, identity.device_id, PLAN)


def submit(store: Store, device_id: str, plan: SweepPlan) -> str:
    with store.write() as session:
        return create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())


def change(store: Store, sweep_id: str, how: Change) -> None:
    with store.write() as session:
        how(session, sweep_id, "ada", store.clock())


def sweep(store: Store, sweep_id: str) -> SweepRecord:
    with store.session() as session:
        return queries.sweep(session, sweep_id)


def measured(store: Store, sweep_id: str) -> list[tuple[str, int]]:
    with store.session() as session:
        return sorted((run.point.id, run.repeat) for run in queries.runs_of_sweep(session, sweep_id))


def wait_until_told(agent: Any, word: str) -> None:
    for line in agent.process.stderr:
        if f"the sweep was {word}" in line:
            return
    pytest.fail(f"the agent ended without having heard that its sweep was {word}")


def check_complete(store: Store, sweep_id: str) -> None:
    wanted = sorted((point.id, repeat) for point in PLAN.points() for repeat in range(PLAN.repeats))
    assert measured(store, sweep_id) == wanted
    assert sweep(store, sweep_id).state is SweepState.DONE


def test_a_paused_sweep_ends_after_the_run_in_progress_and_goes_on_where_it_was(
    store: Store, sweep_id: str, state: Path, start_agent: Any
) -> None:
    agent = start_agent()
    agent.measure(3)
    change(store, sweep_id, control.pause)
    wait_until_told(agent, "paused")
    assert sweep(store, sweep_id).held_until is not None
    assert agent.finish()[0] == 0
    left = sweep(store, sweep_id)
    assert (left.state, left.held_until, left.stored_run_count) == (SweepState.PAUSED, None, 3)
    assert start_agent().finish()[0] == 0  # a paused sweep is given to nobody
    change(store, sweep_id, control.resume)
    again = start_agent()
    again.measure(1)
    assert again.finish()[0] == ALL - 4
    check_complete(store, sweep_id)


def test_a_cancelled_sweep_keeps_its_runs_and_makes_room_for_the_next(
    store: Store, identity: Identity, sweep_id: str, state: Path, start_agent: Any
) -> None:
    following = submit(store, identity.device_id, replace(PLAN, models=("alexnet",)))
    agent = start_agent()
    agent.measure(2)
    change(store, sweep_id, control.cancel)
    wait_until_told(agent, "cancelled")
    assert agent.finish()[0] == ALL
    left = sweep(store, sweep_id)
    assert (left.state, left.held_until, left.stored_run_count) == (SweepState.CANCELLED, None, 2)
    done = sweep(store, following)
    assert (done.state, done.stored_run_count) == (SweepState.DONE, ALL)
    with closing(Spool(state / "spool.db")) as spool:
        assert spool.next() is None
        assert spool.done(sweep_id) == {}


@pytest.mark.parametrize(("how", "word"), [(control.pause, "paused"), (control.cancel, "cancelled")])
def test_an_agent_that_died_before_it_heard_hands_in_what_it_has(  # noqa: PLR0917 - pytest's own arguments
    store: Store, sweep_id: str, state: Path, start_agent: Any, how: Change, word: str
) -> None:
    first = start_agent()
    first.measure(2)
    first.process.kill()
    first.process.wait()
    with closing(Spool(state / "spool.db")) as spool:  # one more was measured while the server was away
        run = make_run(sweep_id, PLAN.points()[-1], 2)
        spool.add(RunFinished(run=run, traces=(), index=3, run_count=ALL), spool.held().fencing_token)
    change(store, sweep_id, how)
    more, log = start_agent().finish()
    assert (more, f"was {word} meanwhile" in log) == (0, True)
    left = sweep(store, sweep_id)
    assert (left.state, left.held_until) == (SweepState(word), None)
    with closing(Spool(state / "spool.db")) as spool:
        assert (spool.held(), spool.next()) == (None, None)
        assert len(measured(store, sweep_id)) == left.stored_run_count == 3


BOARD = "jetson-agx-xavier"


def test_a_real_agent_on_a_simulated_board_is_paused_in_the_middle_and_resumed(
    quick: tuple[str, Store], tmp_path: Path
) -> None:
    """The real command, the real runner: the board's power mode is put back, and no run is made twice."""
    address, store = quick
    state = tmp_path / "xavier"
    environment = {**os.environ, "POWERLAB_STATE_DIR": str(tmp_path / "own")}

    def powerlab(*words: str) -> list[str]:
        return ["-m", "powerlab.cli", *words]

    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
    words = ("--server", address, "--state", str(state), "--code", code, "--board", BOARD, "--name", "paused-board")
    run_forked(powerlab("agent", "enrol", *words), env=environment).check_returncode()
    with store.session() as session:
        (known,) = [one for one in queries.list_devices(session) if one.device.name == "paused-board"]
    brief = {"duration_s": 0.3, "warm_up_s": 0.1, "longest_warm_up_s": 0.2, "idle_s": 0.0}
    plan = SweepPlan(models=("alexnet",), threads=(1,), modes=("MAXN", "MODE_15W"), **brief)
    sweep_id = submit(store, known.id, plan)
    run_agent = powerlab("agent", "run", "--once", "--state", str(state))
    with ForkedProgram(run_agent, stderr=subprocess.PIPE, env=environment) as agent:
        for line in agent.stderr:
            if "run 2 of 6" in line:
                change(store, sweep_id, control.pause)
                break
        log = agent.stderr.read()
    assert agent.returncode == 0, log
    assert "is given back unfinished, and is paused" in log
    before = measured(store, sweep_id)
    assert 2 <= len(before) < 6
    assert sweep(store, sweep_id).state is SweepState.PAUSED
    change(store, sweep_id, control.resume)
    done = run_forked(run_agent, env=environment)
    assert done.returncode == 0, done.stderr
    assert f"run 1 of {6 - len(before)}" in done.stderr
    after = measured(store, sweep_id)
    assert sweep(store, sweep_id).state is SweepState.DONE
    assert after == sorted((point.id, repeat) for point in plan.points() for repeat in range(3))
    assert set(before) < set(after)
