"""Several at once, on both databases: nothing is given twice, nothing is lost, nothing is told."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.access import TokenRequest
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.store import Store
from powerlab.store.errors import UnauthorisedError
from powerlab.store.reads import queries
from powerlab.store.reads.tokens import token_by_hash
from powerlab.store.secrets import sha256
from powerlab.store.tables import Base
from powerlab.store.writes import devices, jobs
from powerlab.store.writes.sweeps import create_sweep
from powerlab.store.writes.tokens import create_token
from server_examples import PLAN, Clock, capabilities, device, runs_of
from store_writing import take, upload


def at_once(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Call an action from several threads at the same moment; returns results and errors, in no order."""
    gate = threading.Barrier(count)
    results: list[Any] = []

    def work(number: int) -> None:
        gate.wait()
        try:
            results.append(action(number))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == count
    return results


def test_a_code_used_by_many_at_once_enrols_one(store: Store) -> None:
    with store.write() as session:
        code = devices.make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code

    def enrol(number: int) -> Any:
        request = EnrolRequest(code=code, device=device(f"board-{number}"), capabilities=capabilities())
        with store.write() as session:
            return devices.enrol(session, request, store.clock())

    results = at_once(5, enrol)
    refused = [one for one in results if isinstance(one, UnauthorisedError)]
    assert len(refused) == 4, results
    with store.session() as session:
        assert len(queries.list_devices(session)) == 1


def test_several_jobs_go_to_several_askers_each_once(store: Store, device_id: str) -> None:
    with store.write() as session:
        made = {create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock()) for _ in range(3)}

    def ask(_: int) -> str | None:
        with store.write() as session:
            held = jobs.lease(session, device_id, store.clock())
            return None if held is None else held.sweep_id

    got = [one for one in at_once(6, ask) if one is not None]
    assert all(isinstance(one, str) for one in got), got
    assert len(got) == len(set(got))
    while (late := ask(0)) is not None:
        got.append(late)
    assert sorted(got) == sorted(made)


def test_the_same_run_sent_twice_at_once_is_stored_once(store: Store, device_id: str, sweep_id: str) -> None:
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    assert sorted(at_once(4, lambda _: upload(store, device_id, held, run))) == [False, False, False, True]


def test_an_expired_lease_goes_to_one_of_many(store: Store, clock: Clock, device_id: str, sweep_id: str) -> None:
    first = take(store, device_id)
    clock.forward(jobs.LEASE_S)
    with store.write() as session:
        assert jobs.lease(session, device_id, clock()) is None  # the last moment still belongs to the holder
    clock.forward(0.001)

    def ask(_: int) -> Any:
        with store.write() as session:
            return jobs.lease(session, device_id, clock())

    (second,) = [one for one in at_once(4, ask) if one is not None]
    assert (second.job_id, second.fencing_token) == (first.job_id, first.fencing_token + 1)


def test_a_sweep_is_leased_by_name(store: Store, device_id: str, sweep_id: str) -> None:
    with store.write() as session:
        held = jobs.lease_sweep(session, sweep_id, store.clock(), 3600.0)
    assert (held.sweep_id, held.plan, held.lease_s) == (sweep_id, PLAN, 3600.0)
    assert upload(store, device_id, held, runs_of(sweep_id)[0])
    with store.write() as session:
        assert jobs.lease(session, device_id, store.clock()) is None
    with pytest.raises(PowerlabError, match="nonsense"), store.write() as session:
        jobs.lease_sweep(session, "nonsense", store.clock(), 1.0)


def test_pages_lose_and_repeat_nothing_while_runs_arrive(
    store: Store, clock: Clock, device_id: str, sweep_id: str
) -> None:
    held, runs = take(store, device_id), runs_of(sweep_id)
    dice = random.Random(7)
    waiting = list(runs)

    def arrive(count: int) -> None:
        for _ in range(min(count, len(waiting))):
            upload(store, device_id, held, waiting.pop())
            if dice.random() < 0.5:  # several arrive within one tick of the clock
                clock.forward(0.001)
        clock.forward(0.001)

    arrive(5)
    seen: list[Run] = []
    after = None
    while True:
        with store.session() as session:
            page = list(queries.stream_runs(session, queries.RunFilter(limit=3, after=after)))
        if not page:
            break
        seen += [run for _, run in page]
        after = (page[-1][0], page[-1][1].id)
        arrive(dice.randrange(4))
    arrived = [run.id for run in runs if run not in waiting]
    assert len(arrived) > 9  # some came while the pages were turned
    assert sorted(run.id for run in seen) == sorted(arrived)


def test_sweeps_that_are_made_meanwhile_do_not_move_the_pages(store: Store, clock: Clock, device_id: str) -> None:
    def make() -> str:
        with store.write() as session:
            plan = SweepPlan(models=("resnet50",), threads=(1,))
            return create_sweep(session, SweepRequest(device_id=device_id, plan=plan), store.clock())

    made = []
    for number in range(7):
        made.append(make())
        clock.forward(number % 2)  # some at the same time
    seen: list[str] = []
    after = None
    while True:
        with store.session() as session:
            page = queries.list_sweeps(session, limit=2, after=after)
        if not page:
            break
        seen += [one.id for one in page]
        after = (page[-1].created_at, page[-1].id)
        clock.forward(1)
        make()
    assert sorted(seen) == sorted(made)


def test_no_secret_is_anywhere_in_the_database(store: Store) -> None:
    with store.write() as session:
        code = devices.make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
    request = EnrolRequest(code=code, device=device(), capabilities=capabilities())
    with store.write() as session:
        token = devices.enrol(session, request, store.clock()).token
    with store.write() as session:
        other = create_token(session, TokenRequest(name="alice"), store.clock(), actor="nobody").token
    with store.session() as session:
        assert token_by_hash(session, sha256(token), store.clock()) is not None
        everything = [
            str(tuple(row))
            for table in Base.metadata.sorted_tables
            for row in session.execute(text(f"SELECT * FROM {table.name}"))
        ]
    assert any("board-1" in row for row in everything)
    assert not [row for row in everything if code in row or token in row or other in row]
