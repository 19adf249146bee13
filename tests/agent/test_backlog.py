"""What an agent says of its spool: as much as there is, for as long as it lies there, and nothing it does not know."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.test_room import LEASE, NARROW, WIDE, finished
from powerlab.protocol.messages import Backlog
from powerlab_agent import spool as spool_module
from powerlab_agent import spool_size as size_module
from powerlab_agent.spool import Spool
from powerlab_agent.spool_size import SpoolSize

EMPTY = Backlog(runs=0, refused_runs=0, chunks=0, size_bytes=0, oldest_age_s=None, shed_runs=0)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A wall clock that goes when it is told to."""
    now = SimpleNamespace(s=1_800_000_000.0)
    for module in (spool_module, size_module):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now.s))
    return now


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with closing(Spool(tmp_path / "spool.db", WIDE)) as spool:
        yield spool


@pytest.fixture
def size(tmp_path: Path) -> SpoolSize:
    return SpoolSize(tmp_path / "spool.db")


def test_an_empty_spool_has_nothing_that_waits(spool: Spool, size: SpoolSize) -> None:
    assert size.backlog() == EMPTY


def test_it_grows_with_every_run_and_shrinks_with_every_upload(
    spool: Spool, size: SpoolSize, now: SimpleNamespace
) -> None:
    runs = [finished(repeat) for repeat in range(3)]
    for one in runs:
        spool.add(one, 7)
        now.s += 100.0
    said = size.backlog()
    assert (said.runs, said.refused_runs, said.shed_runs, said.oldest_age_s) == (3, 0, 0, 300.0)
    assert said.chunks >= 3
    assert said.size_bytes > 3 * 12 * 25_000 * 0.9, "what the traces take at least"
    spool.remove(runs[0].run.id)
    fewer = size.backlog()
    assert (fewer.runs, fewer.oldest_age_s) == (2, 200.0)
    assert fewer.chunks == said.chunks * 2 // 3
    assert fewer.size_bytes < said.size_bytes
    for one in runs[1:]:
        spool.remove(one.run.id)
    assert size.backlog() == EMPTY


def test_a_refused_run_is_told_apart_and_does_not_wait(spool: Spool, size: SpoolSize, now: SimpleNamespace) -> None:
    old, new = finished(0, count=0), finished(1, count=0)
    spool.add(old, 7)
    now.s += 60.0
    spool.add(new, 7)
    now.s += 5.0
    spool.set_aside(old.run.id, "stale-lease", "the job was given out again")
    said = size.backlog()
    assert (said.runs, said.refused_runs, said.oldest_age_s) == (1, 1, 5.0)
    spool.remove(new.run.id)
    said = size.backlog()
    assert (said.runs, said.refused_runs, said.oldest_age_s) == (0, 1, None)
    assert said.size_bytes > 0
    spool.hold(LEASE)  # the sweep is given to this agent again
    assert (size.backlog().runs, size.backlog().refused_runs) == (1, 0)


def test_a_clock_that_was_set_back_makes_no_negative_age(spool: Spool, size: SpoolSize, now: SimpleNamespace) -> None:
    spool.add(finished(0, count=0), 7)
    now.s -= 3600.0
    assert size.backlog().oldest_age_s == 0.0


def test_an_age_from_before_the_clock_was_set_is_unknown(spool: Spool, size: SpoolSize, now: SimpleNamespace) -> None:
    now.s = 12.0
    spool.add(finished(0, count=0), 7)
    now.s = 1_800_000_000.0
    said = size.backlog()
    assert (said.runs, said.oldest_age_s) == (1, None)


def test_every_run_that_lost_its_traces_is_counted_for_ever(tmp_path: Path, size: SpoolSize) -> None:
    with closing(Spool(tmp_path / "spool.db", NARROW)) as spool:
        for repeat in range(12):
            spool.add(finished(repeat), 7)
        without = 0
        while (spooled := spool.next()) is not None:
            without += bool(spooled.run.conditions and spooled.run.conditions.traces_shed)
            spool.remove(spooled.run.id)
        spool.add(finished(99, count=200_000), 7)  # its traces alone are more than the bound
        last = spool.next()
        assert last is not None
        assert last.run.conditions.traces_shed
    assert without > 0
    assert size.backlog().shed_runs == without + 1


def test_a_spool_of_an_older_agent_goes_on_and_does_not_know_how_old_its_runs_are(
    tmp_path: Path, size: SpoolSize
) -> None:
    path = tmp_path / "spool.db"
    with closing(Spool(path, WIDE)) as spool:
        spool.add(finished(0, count=0), 7)
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "ALTER TABLE run DROP COLUMN added_at; DROP TABLE shed; ALTER TABLE done DROP COLUMN figures; "
            "PRAGMA user_version = 1;"
        )
    with closing(Spool(path, WIDE)) as spool:
        spool.add(finished(1, count=0), 7)
        said = size.backlog()
        assert (said.runs, said.oldest_age_s, said.shed_runs) == (2, None, 0)
        spool.remove(spool.next().run.id)
        assert size.backlog().oldest_age_s is not None, "the newer run's is known"


def test_a_spool_that_cannot_be_read_is_unknown_and_not_empty(tmp_path: Path) -> None:
    assert SpoolSize(tmp_path / "none" / "spool.db").backlog() is None
    (tmp_path / "garbage.db").write_bytes(b"not a database" * 1000)
    assert SpoolSize(tmp_path / "garbage.db").backlog() is None
