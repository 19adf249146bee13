"""The page of trends: which series there are, where they changed, and one of them as a chart."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from powerlab.domain.quantity import Metric
from powerlab.domain.run import Conditions, Run
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf
from tests.dashboards.page_tree import parse

PLAN = plausible.plan(threads=(2,), batch_sizes=(1,), modes=("MAXN",))


def scaled(metric: Metric, factor: float) -> Metric:
    assert metric.low is not None
    assert metric.high is not None
    return replace(metric, value=metric.value * factor, low=metric.low * factor, high=metric.high * factor)


def measured(day: int, factor: float, version: str) -> list[Run]:
    """Return a sweep's runs of one day, with another throughput and latency."""
    at = (START + timedelta(days=day)).isoformat()
    factors = {"throughput_img_per_s": factor, "efficiency_img_per_s_per_w": factor, "latency_p50_ms": 1 / factor}
    return [
        replace(
            run,
            started_at=at,
            conditions=Conditions(sample_period_s=0.01, measured_with=version),
            metrics=tuple(scaled(one, factors.get(one.name, 1.0)) for one in run.metrics),
        )
        for run in plausible.runs(plausible.xavier("one"), PLAN, "to be set", seed=day)
    ]


@pytest.fixture
def changed(shelf: Shelf) -> list[str]:
    """Return the ids of 20 sweeps of one point, of which the last eight are a tenth slower."""
    return [
        shelf.add_sweep(
            plausible.xavier("one"), PLAN, made=measured(day, 0.9 if day >= 12 else 1.0, "2" if day >= 12 else "1")
        ).id
        for day in range(20)
    ]


def test_a_change_is_shown_with_its_size_and_what_else_changed(client: TestClient, changed: list[str]) -> None:
    main = parse(client.get("/trends?model=resnet50").text).one("main")
    assert main.one("h1").text == "Trends: resnet50"
    assert f'href="/sweeps/{changed[12]}"' in client.get("/trends").text
    assert "powerlab: 1 → 2" in main.text
    assert "worse" in main.text
    figures = {}
    for link in main.all("a"):
        if "series=" in link.attributes["href"]:
            figures[link.parent.parent.text] = link.attributes["href"]  # type: ignore[union-attr]
    assert len(figures) == 3, "latency, throughput and efficiency"
    throughput = next(address for row, address in figures.items() if "Throughput" in row)
    chosen = parse(client.get(throughput).text).one("main")
    assert "Throughput: one, resnet50, batch 1, 2 threads, mode MAXN" in chosen.text
    assert re.search(r"−(9\.\d|10) %", chosen.text)


def test_the_chart_has_values_means_the_change_and_the_new_version(client: TestClient, changed: list[str]) -> None:
    page = client.get("/trends?model=resnet50").text
    address = re.search(r'data-figure="([^"]+)"', page)
    assert address is not None
    figure = json.loads(client.get(address[1].replace("&amp;", "&")).text)
    names = [trace["name"] for trace in figure["data"]]
    assert names[0] == "mean of a sweep's repeats"
    assert names.count("mean between changes") == 2
    assert "other versions from here" in names
    assert len(figure["data"][0]["x"]) == len(changed)
    assert len(figure["layout"]["shapes"]) == 1
    assert figure["layout"]["annotations"][0]["text"].endswith("%")
    assert max(figure["data"][0]["error_y"]["array"]) > 0


def test_a_new_sweep_is_seen_at_once(shelf: Shelf, client: TestClient) -> None:
    for number in (1, 2):
        shelf.add_sweep(plausible.xavier("one"), PLAN, made=measured(number, 1.0, "1"))
        assert f"{number} sweep" in client.get("/trends").text
    assert "No change can be found yet: that takes" in client.get("/trends").text


def test_series_can_be_kept_to_a_device_and_are_paged(shelf: Shelf, client: TestClient) -> None:
    plan = plausible.plan(threads=(1, 2), batch_sizes=(1, 4, 8), modes=("MAXN", "MODE_15W"))
    one, _ = (shelf.add_sweep(plausible.xavier(name), plan) for name in ("one", "other"))
    assert "Series 1 to 25 of 72" in client.get("/trends?model=resnet50").text
    assert "Series 51 to 72 of 72" in client.get("/trends?model=resnet50&after=50").text
    kept = parse(client.get(f"/trends?model=resnet50&device={one.device_id}").text).one("main").text
    assert "Series 1 to 25 of 36" in kept


def test_nothing_to_follow_is_said(client: TestClient) -> None:
    assert "No sweeps with runs yet" in client.get("/trends").text
    assert "No sweep has a valid run of this model." in client.get("/trends?model=nosuch").text
    assert client.get("/trends?model=nosuch&device=nosuch").status_code == 404
    assert "No sweep has a valid run of this point." in client.get("/trends/charts/trend?model=nosuch").text
    assert client.get("/trends/charts/nosuch").status_code == 404
