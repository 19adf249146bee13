"""The same results in a database, on a server and in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from layer_profiles import layer_profile
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.client import Client
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.store import Store
from powerlab_api.app import create_app
from served import served
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelved, open_shelf

PLAN = plausible.plan(batch_sizes=(1,), modes=("MAXN", "MODE_15W"), repeats=4)


@dataclass(frozen=True, kw_only=True)
class World:
    """A store with two sweeps, its server, and a results file of the first sweep.

    The last run of the first sweep failed, one is flagged, and the second sweep's device has no power sensor.
    """

    store: Store
    client: Client
    file: Path
    sweep: Shelved
    without_power: Shelved

    def source(self, kind: str) -> Client | Store | str | Path:
        """Return the source of that kind."""
        kinds: dict[str, Client | Store | str | Path] = {
            "store": self.store, "database": self.store.address, "client": self.client,
            "address": self.client.server, "file": self.file,
        }  # fmt: skip
        return kinds[kind]


def _runs() -> list[Run]:
    *runs, last = plausible.runs(plausible.xavier(), PLAN, "s")
    hot = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="1.2 GHz of 2.2 GHz")
    runs[1] = replace(runs[1], verdict=Verdict.FLAGGED, findings=(hot,))
    return [*runs, plausible.failed(last.point, "s", last.repeat)]


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("frames")
    shelf = open_shelf(folder / "powerlab.db")
    with closing(shelf.store):
        sweep = shelf.add_sweep(plausible.xavier(), PLAN, made=_runs())
        bare = shelf.add_sweep(plausible.bare(), plausible.plan(batch_sizes=(1,), modes=("current",)))
        shelf.add_layers(
            sweep.device_id,
            layer_profile(),
            layer_profile("00000000-6a55-4c3d-9f6e-0d4f1a2b3c4d", power=None, clock=Provenance.MEASURED),
        )
        with closing(ResultsFile(folder, sweep.id, sweep.bench.device, PLAN)) as results:
            for run in sweep.runs:
                results.add(run)
        with served(create_app(shelf.store)) as address:
            yield World(store=shelf.store, client=Client(address), file=results.path, sweep=sweep, without_power=bare)
