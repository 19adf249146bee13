"""A small fleet at a real server that is killed on the way: every job is done once, no result is lost or doubled."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

import own_loop
from bench.service.agent import Habits
from bench.service.check import faults
from bench.service.fleet import Load, unleash
from bench.service.server import a_database, running_server
from powerlab.store import open_store

pytestmark = pytest.mark.campaign(minutes=0.5)

_HABITS = Habits(run_s=0.05, wait_s=5.0, death=0.02, forgets=0.3, away_s=0.2, repeats=0.2)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_fleet_outlives_the_server_and_itself(kind: str, tmp_path: Path) -> None:
    load = Load(agents=30, jobs=30, over_s=2.0, habits=_HABITS)
    with a_database(kind, tmp_path) as address:
        with running_server(address, lease_s=2.0) as server:
            ledger = own_loop.run(unleash(server, load))
        assert faults(address, ledger) == []
        # It happened: the server was cut off, agents died, uploads came twice, and late ones were refused.
        assert ledger.events["no answer"] > 0
        assert ledger.events["killed"] + ledger.events["killed, disk lost"] > 0
        assert ledger.events["sent twice"] > 0
        assert ledger.events["late upload taken"] == 0
        # The check sees what is missing and what is too much.
        with closing(open_store(address)) as store, store.write() as session:
            session.execute(text("DELETE FROM trace_chunk WHERE id = (SELECT min(id) FROM trace_chunk)"))
        assert len(faults(address, ledger)) >= 2
