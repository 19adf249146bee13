"""The pages of a run whose traces are no longer kept say so, and still have its figures."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from starlette.testclient import TestClient

from powerlab.store.maintenance.retention import retire
from powerlab.store.tables.retirement import Kind
from tests.dashboards.conftest import START, Shelf, add_recorded_run
from tests.dashboards.page_tree import parse

WHY = "traces of runs that arrived before 01 December 2026 are no longer kept"


def test_a_run_says_that_its_traces_went(client: TestClient, shelf: Shelf) -> None:
    run = add_recorded_run(shelf)
    before = parse(client.get(f"/runs/{run.id}").text).one("main").text
    assert "no longer kept" not in before
    later = replace(shelf.store, clock=lambda: START + timedelta(days=80))
    assert retire(later, Kind.TRACES, 2).row_count > 0
    after = parse(client.get(f"/runs/{run.id}").text).one("main").text
    assert WHY in after
    assert "Power while running" in after
    chart = client.get(f"/runs/{run.id}/charts/power-trace")
    assert chart.status_code == 200
    assert WHY[1:] in chart.text
    audit = client.get(f"/runs/{run.id}/audit")
    assert WHY in parse(audit.text).one("main").text
