"""Lists, pages and charts ask the database the same few questions, however much there is to show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from starlette.testclient import TestClient

from powerlab.cli.commands.serve.server import compose
from powerlab_api.settings import Settings
from powerlab_dashboards.charts.registry import RUN_CHARTS, SET_CHARTS, SWEEP_CHARTS
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, Shelved, open_shelf

SET_PAGES = {f"/compare/charts/{chart}?a={{sweep}}&b=device=other": 12 for chart in SET_CHARTS}
SWEEP_PAGES = {f"/sweeps/{{sweep}}/charts/{chart}": 4 for chart in SWEEP_CHARTS}
RUN_PAGES = {f"/runs/{{run}}/charts/{chart}": 6 for chart in RUN_CHARTS}
MOST = {
    "/": 8,
    "/devices": 8,
    "/devices/{device}": 17,
    "/devices/{device}/history": 14,
    "/sweeps/{sweep}": 11,
    "/sweeps/{sweep}?p99=1h&goal=energy&words=batch&sort=-power_w": 15,
    "/sweeps/{sweep}/points.csv": 5,
    "/sweeps/{sweep}/runs": 4,
    "/runs/{run}": 11,
    "/studies/tegra-x1-alexnet": 6,
    "/studies/tegra-x1-alexnet/charts/study-figures": 6,
    "/trends": 7,
    "/jobs": 8,
    "/admin": 10,
    "/admin/log": 4,
    "/compare": 4,
    "/compare?a={sweep}&b=model=alexnet,device=other": 12,
    "/compare?a=device=other&b={sweep}": 14,
    "/models": 3,
    "/models/alexnet": 3,
    "/sweeps/new?device={device}": 12,
    "/metrics": 8,
    "/api/v1/runs?limit=500": 3,
    "/api/v1/runs?model=alexnet&limit=500": 5,
    "/api/v1/runs/{run}": 4,
    "/api/v1/metrics?name=throughput_img_per_s&limit=500": 1,
    "/api/v1/sweeps?limit=500": 1,
    "/api/v1/sweeps/{sweep}": 1,
    "/api/v1/sweeps/{sweep}/points": 4,
    "/api/v1/jobs?limit=500": 1,
    "/api/v1/points?limit=500": 1,
    "/api/v1/workloads?limit=500": 1,
    "/api/v1/devices?limit=500": 2,
    **SET_PAGES,
    **SWEEP_PAGES,
    **RUN_PAGES,
}
"""Questions that an address takes; one more is a decision, one for every row is a mistake."""


class Counted:
    """A server over a shelf, and how often it asks the database."""

    def __init__(self, shelf: Shelf, sweep: Shelved, client: TestClient) -> None:
        self._engine, self._client = shelf.store.engine, client
        self._names = {"sweep": sweep.id, "run": sweep.runs[0].id, "device": sweep.device_id}
        client.get("/studies")  # the first page of all fetches what signs its forms

    def ask(self, address: str) -> tuple[int, int]:
        """Return how long an answer is, in bytes, and how many SELECTs it took."""
        seen: list[str] = []

        def note(*args: Any) -> None:
            if args[2].lstrip().startswith("SELECT"):
                seen.append(args[2])

        event.listen(self._engine, "before_cursor_execute", note)
        try:
            answer = self._client.get(address.format(**self._names))
        finally:
            event.remove(self._engine, "before_cursor_execute", note)
        assert answer.status_code == 200, answer.text
        return len(answer.content), len(seen)


def _counted(path: Path, device_count: int, points: dict[str, tuple[int, ...]]) -> Iterator[Counted]:
    shelf = open_shelf(path / "powerlab.db")
    plan = plausible.plan(models=("alexnet",), modes=("current",), **points)
    sweeps = [shelf.add_sweep(plausible.laptop(f"bench-{number}"), plan) for number in range(device_count)]
    shelf.add_sweep(plausible.laptop("other"), plan)
    with TestClient(compose(shelf.store, Settings())) as client:
        yield Counted(shelf, sweeps[0], client)
    shelf.store.close()


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """A device with a sweep of a single point, and another one with the same."""
    yield from _counted(tmp_path_factory.mktemp("little"), 1, {"threads": (1,), "batch_sizes": (1,)})


@pytest.fixture(scope="module")
def much(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    """Four devices with sweeps of four points."""
    yield from _counted(tmp_path_factory.mktemp("much"), 3, {"threads": (1, 2), "batch_sizes": (1, 4)})


@pytest.mark.parametrize("address", MOST)
def test_the_number_of_questions_does_not_grow(address: str, little: Counted, much: Counted) -> None:
    short, few = little.ask(address)
    long, many = much.ask(address)
    assert many == few <= MOST[address]
    if not any(
        word in address for word in ("{run}", "{device}", "set-ratios", "study-figures")
    ):  # these are as long as any other
        assert long > short
