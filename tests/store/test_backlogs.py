"""What agents have not uploaded is kept with their devices, and written where it is news."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Backlog
from powerlab.protocol.records import BacklogRecord
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.fleet import read_fleet
from powerlab.store.writes import backlogs
from server_examples import Clock

SAID = Backlog(runs=3, refused_runs=1, chunks=12, size_bytes=1 << 40, oldest_age_s=90.0, shed_runs=2)
NOTHING = Backlog(runs=0, refused_runs=0, chunks=0, size_bytes=0, oldest_age_s=None, shed_runs=0)


def say(store: Store, device_id: str, said: Backlog | None) -> bool:
    """Say it, and return whether it was news."""
    with store.session() as session:
        news = backlogs.is_news(session, device_id, said, store.clock())
    with store.write() as session:
        backlogs.note(session, device_id, said, store.clock())
    return news


def kept(store: Store, device_id: str) -> BacklogRecord | None:
    with store.session() as session:
        (listed,) = (one for one in queries.list_devices(session) if one.id == device_id)
        assert listed == queries.device(session, device_id)
        (seen,) = (one for one in read_fleet(session, store.clock()).devices if one.id == device_id)
        assert seen.backlog == listed.backlog
    return listed.backlog


def test_an_agent_that_never_said_is_unknown_and_not_empty(store: Store, device_id: str) -> None:
    assert kept(store, device_id) is None
    assert not say(store, device_id, None)
    assert kept(store, device_id) is None
    assert say(store, device_id, NOTHING)
    assert kept(store, device_id).runs == 0


def test_what_was_said_last_is_kept_for_each_device(store: Store, clock: Clock, device_id: str, other_id: str) -> None:
    assert say(store, device_id, SAID)
    found = kept(store, device_id)
    assert (found.runs, found.refused_runs, found.chunks, found.size_bytes, found.shed_runs) == (3, 1, 12, 1 << 40, 2)
    assert (found.said_at, found.oldest_since) == (clock.now, clock.now - timedelta(seconds=90))
    assert kept(store, other_id) is None
    clock.forward(20)
    assert say(store, device_id, replace(NOTHING, shed_runs=2))
    emptied = kept(store, device_id)
    assert (emptied.runs, emptied.oldest_since, emptied.said_at) == (0, None, clock.now)


def test_the_same_said_again_writes_nothing_as_the_oldest_run_grows_older(
    store: Store, clock: Clock, device_id: str
) -> None:
    say(store, device_id, SAID)
    first = kept(store, device_id)
    clock.forward(600)
    assert not say(store, device_id, replace(SAID, oldest_age_s=691.5))
    assert kept(store, device_id) == first
    assert say(store, device_id, replace(SAID, oldest_age_s=60.0)), "the oldest is another one"
    assert say(store, device_id, replace(SAID, oldest_age_s=None)), "nobody knows any more"
    for change in ({"runs": 4}, {"chunks": 13}, {"size_bytes": 5}, {"shed_runs": 3}, {"refused_runs": 0}):
        assert say(store, device_id, replace(SAID, **change))


@pytest.mark.parametrize(
    "change",
    [{"runs": -1}, {"size_bytes": 1 << 70}, {"oldest_age_s": math.inf}, {"oldest_age_s": -1.0}, {"oldest_age_s": 1e12}],
)
def test_numbers_that_are_none_are_refused(store: Store, device_id: str, change: dict[str, float]) -> None:
    with pytest.raises(PowerlabError, match=r"a backlog holds counts from 0 on|a backlog's oldest run"):
        say(store, device_id, replace(SAID, **change))
    assert kept(store, device_id) is None


def test_an_age_without_a_run_is_no_age(store: Store, device_id: str) -> None:
    say(store, device_id, replace(NOTHING, oldest_age_s=5.0))
    assert kept(store, device_id).oldest_since is None


@pytest.mark.parametrize("wrong", ["runs = -1", "runs = 0, oldest_since = said_at"])
def test_the_database_itself_takes_no_nonsense(store: Store, device_id: str, wrong: str) -> None:
    say(store, device_id, SAID)
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(f"UPDATE device_backlog SET {wrong}"))
