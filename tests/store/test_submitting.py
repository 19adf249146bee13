"""Asking for a sweep twice makes it once; asking for it once more is another one."""

from __future__ import annotations

import threading
import uuid
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import CloneRequest, SweepRequest
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads import queries
from powerlab.store.writes.clones import cloned
from powerlab.store.writes.sweeps import submit_sweep
from server_examples import PLAN


def submit(store: Store, request: SweepRequest, **how: Any) -> tuple[str, bool]:
    with store.write() as session:
        return submit_sweep(session, request, store.clock(), **{"by": "ada", **how})


def count(store: Store, table: str) -> int:
    with store.session() as session:
        return session.scalar(text(f"SELECT count(*) FROM {table}"))


@pytest.fixture
def request_(device_id: str) -> SweepRequest:
    return SweepRequest(device_id=device_id, plan=PLAN)


def test_the_same_key_and_words_give_the_same_sweep(store: Store, request_: SweepRequest) -> None:
    made, new = submit(store, request_, key="monday")
    assert new
    assert submit(store, request_, key="monday") == (made, False)
    assert submit(store, request_, key="tuesday")[0] != made
    assert submit(store, request_, by="bob", key="monday")[0] != made
    assert submit(store, request_)[1]
    assert count(store, "sweep") == count(store, "job") == 4


@pytest.mark.parametrize(
    "other",
    [{"plan": replace(PLAN, seed=7)}, {"priority": 1}, {"device_id": "another"}],
    ids=["plan", "priority", "device"],
)
def test_the_same_key_with_other_words_is_a_conflict(store: Store, request_: SweepRequest, other: Any) -> None:
    identifier = str(uuid.uuid4())
    for how in ({"key": "monday"}, {"sweep_id": identifier}):
        made, _ = submit(store, request_, **how)
        with pytest.raises(ConflictError, match=rf"belongs to another sweep \({made}\)"):
            submit(store, replace(request_, **other), **how)


def test_a_client_may_choose_the_identifier(store: Store, request_: SweepRequest) -> None:
    chosen = str(uuid.uuid4())
    assert submit(store, request_, sweep_id=chosen) == (chosen, True)
    assert submit(store, request_, sweep_id=chosen) == (chosen, False)
    for bad in ("monday", chosen.upper(), "{" + chosen + "}", ""):
        with pytest.raises(PowerlabError, match="make a UUID"):
            submit(store, request_, sweep_id=bad)


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_is_neither_empty_nor_a_book(store: Store, request_: SweepRequest, key: str) -> None:
    with pytest.raises(PowerlabError, match="1 to 200 characters"):
        submit(store, request_, key=key)


@pytest.mark.parametrize("how", [{"key": "k"}, {"sweep_id": str(uuid.uuid4())}], ids=["key", "identifier"])
def test_of_many_who_ask_at_once_one_makes_it(store: Store, request_: SweepRequest, how: Any) -> None:
    submit(store, request_)  # so that none of them has to make the workloads
    gate, results = threading.Barrier(5), []

    def ask() -> None:
        gate.wait()
        try:
            results.append(submit(store, request_, **how))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({sweep_id for sweep_id, _ in results}) == 1, results
    assert sorted(new for _, new in results) == [False] * 4 + [True]
    assert count(store, "sweep") == 2


def test_a_clone_is_the_same_but_for_its_changes(store: Store, request_: SweepRequest, other_id: str) -> None:
    original, _ = submit(store, replace(request_, priority=4))
    with store.session() as session:
        assert cloned(session, original, CloneRequest()) == replace(request_, priority=4)
        request = CloneRequest(device_id=other_id, changes={"threads": [2], "seed": 9}, priority=0)
        changed = cloned(session, original, request)
    assert changed == SweepRequest(device_id=other_id, plan=replace(PLAN, threads=(2,), seed=9))
    copy, new = submit(store, changed, cloned_from=original)
    assert new
    with store.session() as session:
        record = queries.sweep(session, copy)
    assert (record.cloned_from, record.plan, record.device_id) == (original, changed.plan, other_id)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"thread": [1]}, r"a plan has no 'thread' \(did you mean threads\?\)"),
        ({"threads": "many"}, "this is not a SweepPlan"),
        ({"repeats": None}, "this is not a SweepPlan"),
    ],
)
def test_changes_that_are_none(store: Store, sweep_id: str, changes: Any, words: str) -> None:
    with store.session() as session, pytest.raises(PowerlabError, match=words):
        cloned(session, sweep_id, CloneRequest(changes=changes))


def test_what_is_not_there_cannot_be_cloned(store: Store) -> None:
    with store.session() as session, pytest.raises(NotFoundError):
        cloned(session, "nothing", CloneRequest())


def test_a_mode_of_parts_is_left_to_the_device(store: Store, device_id: str) -> None:
    """The device alone knows whether it can set it; the same name again is the same mode."""
    plan = replace(PLAN, modes=("current", "cores=2", "cores=3"))
    for _ in range(2):
        made, _ = submit(store, SweepRequest(device_id=device_id, plan=plan))
        with store.session() as session:
            assert queries.sweep(session, made).plan == plan
