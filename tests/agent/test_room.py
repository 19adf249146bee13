"""A spool that is bounded: which traces go first, what says so, and what never goes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.domain.run import Conditions, Run
from powerlab.protocol.messages import Lease
from powerlab.sweep.events import RunFinished
from powerlab_agent import shedding
from powerlab_agent.room import MIB, Limits, SpoolUnwritableError, in_words
from powerlab_agent.spool import Spool
from server_examples import PLAN, RAIL, make_run

WIDE = Limits(reserve_bytes=0)
NARROW = Limits(spool_bytes=MIB, reserve_bytes=0)
LEASE = Lease(job_id="j", sweep_id="s", plan=PLAN, fencing_token=7, lease_s=60.0, done=())


def noise(count: int) -> Trace:
    """About 12 bytes a sample in the spool, for chance cannot be compressed."""
    chance = np.random.default_rng(1)
    time_ns = np.cumsum(chance.integers(1, 1 << 40, count))
    return Trace(rail=RAIL, time_ns=time_ns, value=chance.normal(7.0, 0.5, count))


def finished(repeat: int, count: int = 25_000, sweep_id: str = "s") -> RunFinished:
    run = replace(make_run(sweep_id, PLAN.points()[0], repeat), conditions=Conditions(sample_period_s=0.01))
    return RunFinished(run=run, traces=(noise(count),) if count else (), index=1, run_count=1)


def drain(spool: Spool) -> list[tuple[Run, int]]:
    found = []
    while (spooled := spool.next()) is not None:
        found.append((spooled.run, len(spooled.chunks)))
        spool.remove(spooled.run.id)
    return found


def used_bytes(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        page, pages, free = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
        )
    return page * (pages - free)


def test_a_spool_never_outgrows_its_bound_and_keeps_every_run(tmp_path: Path) -> None:
    runs = [finished(repeat) for repeat in range(12)]
    with closing(Spool(tmp_path / "spool.db", NARROW)) as spool:
        for one in runs:
            assert spool.add(one, 7) == ()
            assert used_bytes(tmp_path / "spool.db") <= NARROW.spool_bytes
        kept = drain(spool)
    assert [run.id for run, _ in kept] == [one.run.id for one in runs]
    chunks = [count for _, count in kept]
    assert 0 < sum(chunks) < len(runs)
    assert chunks == sorted(chunks), "the oldest went first"
    for run, count in kept:
        assert bool(run.conditions.traces_shed) == (count == 0)
        assert count or "reached 1 MiB" in run.conditions.traces_shed
    shed = kept[0][0]
    assert replace(shed, conditions=replace(shed.conditions, traces_shed="")) == runs[0].run


def test_traces_that_nobody_waits_for_go_first(tmp_path: Path) -> None:
    with closing(Spool(tmp_path / "spool.db", NARROW)) as spool:
        for repeat in range(2):
            spool.add(finished(repeat, 18_000), 7)
        newer = finished(2, 18_000)
        spool.add(newer, 7)
        spool.set_aside(newer.run.id, "not-found", "there is no such sweep")
        spool.add(finished(3, 18_000), 7)
        assert [count for _, count in drain(spool)] == [1, 1, 1]
        assert spool.refused()[newer.run.id].reason == "there is no such sweep"
        spool.hold(LEASE)
        ((run, count),) = drain(spool)
    assert (run.id, count) == (newer.run.id, 0)
    assert "1 chunk" in run.conditions.traces_shed


def test_what_the_server_may_have_seen_is_not_changed(tmp_path: Path) -> None:
    first, second = finished(0, count=60_000), finished(1, count=60_000)
    with closing(Spool(tmp_path / "spool.db", NARROW)) as spool:
        spool.add(first, 7)
        spool.begin(first.run.id)
        (complaint,) = spool.add(second, 7)
        (begun, chunks), (poorer, none) = drain(spool)
    assert (begun, chunks) == (first.run, 1)
    assert (poorer.id, none) == (second.run.id, 0)
    assert complaint == poorer.conditions.traces_shed


def test_the_disk_keeps_its_reserve_and_a_run_may_use_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = {"bytes": 100 * MIB}
    monkeypatch.setattr(shedding, "free_bytes", lambda _: free["bytes"])
    limits = Limits(reserve_bytes=50 * MIB)
    with closing(Spool(tmp_path / "spool.db", limits)) as spool:
        spool.add(finished(0), 7)
        size = used_bytes(tmp_path / "spool.db")
        free["bytes"] = 10 * MIB
        (complaint,) = spool.add(finished(1), 7)
        assert "less than 50 MiB were left" in complaint
        assert (tmp_path / "spool.db").stat().st_size < size / 4, "what was shed goes back to the disk"
        assert [count for _, count in drain(spool)] == [0, 0]


def test_only_what_was_not_sent_waits(tmp_path: Path) -> None:
    with closing(Spool(tmp_path / "spool.db", WIDE)) as spool:
        spool.add(finished(0, count=150_000), 7)
        first, *rest = spool.next().chunks
        spool.sent([first])
        assert spool.next().chunks == tuple(rest)
        assert spool.chunk(rest[0]).position == 1


def test_a_lease_brings_back_what_an_older_one_was_refused(tmp_path: Path) -> None:
    mine, other = finished(0, 10), finished(0, 10, sweep_id="other")
    with closing(Spool(tmp_path / "spool.db", WIDE)) as spool:
        for one in (mine, other):
            spool.add(one, 6)
            spool.set_aside(one.run.id, "stale-lease", "the job was given out again")
        assert spool.next() is None
        spool.hold(LEASE)
        assert spool.next().run == mine.run
        assert list(spool.refused()) == [other.run.id]
        spool.remove(other.run.id)
        assert spool.done("other")
        spool.hold(LEASE)
        assert (bool(spool.done("s")), spool.done("other")) == (True, {})


def test_a_spool_of_an_earlier_release_is_read(tmp_path: Path) -> None:
    """As the release before wrote it: without bounds, and without a word on what was begun."""
    with closing(Spool(tmp_path / "now.db", WIDE)) as spool:
        spool.add(finished(0), 7)
    with (
        closing(sqlite3.connect(tmp_path / "now.db")) as database,
        closing(sqlite3.connect(tmp_path / "old.db")) as old,
    ):
        (document,) = database.execute("SELECT document FROM run").fetchone()
        old.execute(
            "CREATE TABLE run (number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, sweep_id TEXT NOT NULL, "
            "fencing_token INTEGER NOT NULL, document BLOB NOT NULL, refusal TEXT)"
        )
        old.execute("INSERT INTO run VALUES (1, 'r', 's', 7, ?, 'gone')", (document,))
        old.commit()
    for _ in range(2):
        with closing(Spool(tmp_path / "old.db", WIDE)) as spool:
            assert (spool.refused()["r"].kind, spool.refused()["r"].reason) == ("", "gone")
    with closing(Spool(tmp_path / "old.db", WIDE)) as spool:
        spool.hold(LEASE)
        assert spool.next().run.sweep_id == "s"


def test_a_spool_that_cannot_be_written_says_so_and_keeps_what_it_has(tmp_path: Path) -> None:
    run = finished(0, 10)
    with closing(Spool(tmp_path / "spool.db", WIDE)) as spool, closing(sqlite3.connect(tmp_path / "spool.db")) as other:
        spool.add(run, 7)
        spool._db.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        for write in (spool.let_go, lambda: spool.add(finished(1, 10), 7), lambda: spool.remove(run.run.id)):
            with pytest.raises(SpoolUnwritableError, match="free some space on its disk"):
                write()
        other.execute("ROLLBACK")
        assert drain(spool) == [(run.run, 1)]


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 30, "3 GiB")]
)
def test_sizes_in_words(count: int, words: str) -> None:
    assert in_words(count) == words


def test_bounds_that_are_none() -> None:
    with pytest.raises(PowerlabError, match="1 MiB or more"):
        Limits(spool_bytes=0)
