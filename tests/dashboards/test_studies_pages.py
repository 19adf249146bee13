"""The pages of studies: published tables, what the store has beside them, and addresses nobody meant."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from starlette.testclient import TestClient

from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.studies.registry import STUDIES
from tests.analysis.paired_runs import sweep
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, Shelved
from tests.dashboards.page_tree import parse


def plan(**changes: object) -> SweepPlan:
    return plausible.plan(
        **{"models": ("alexnet",), "modes": ("current",), "threads": (2,), "batch_sizes": (1,), **changes}
    )


def runs_of(wanted: SweepPlan, rate: float = 20.0) -> Sequence[Run]:
    return sweep(dict.fromkeys(wanted.points(), (rate, 10.0)), repeats=wanted.repeats)


def add(shelf: Shelf, wanted: SweepPlan, rate: float = 20.0, name: str = "bench-1") -> Shelved:
    return shelf.add_sweep(plausible.laptop(name), wanted, made=runs_of(wanted, rate))


def test_every_study_has_a_page_also_before_anything_was_measured(client: TestClient) -> None:
    listed = client.get("/studies")
    assert listed.status_code == 200
    for name, study in STUDIES.items():
        assert f'href="/studies/{name}"' in listed.text
        page = client.get(f"/studies/{name}")
        assert page.status_code == 200
        published = sum(len(case.published) for case in study.cases)
        assert page.text.count("prov-published") >= published
        assert ("no sweep on this server has replicated it yet" in page.text) == (published == 0)


def test_a_sweep_of_the_same_network_stands_beside_the_published_rows(shelf: Shelf, client: TestClient) -> None:
    made = add(shelf, plan(batch_sizes=(1, 16)))
    page = client.get("/studies/tegra-x1-alexnet").text
    assert page.count(f'href="/sweeps/{made.id}"') == 2
    assert page.count("3 of 3 runs valid") == 2
    assert "prov-published" in page
    assert "prov-measured" in page
    assert made.id not in client.get("/studies/xavier-resnet50").text


def test_of_every_device_each_point_is_shown_from_its_newest_sweep(shelf: Shelf, client: TestClient) -> None:
    old = add(shelf, plan(threads=(1, 2)), rate=11.0)
    new = add(shelf, plan(threads=(2,)), rate=33.0)
    other = add(shelf, plan(threads=(2,)), rate=44.0, name="bench-2")
    page = client.get("/studies/tegra-x1-alexnet").text
    assert [page.count(f'href="/sweeps/{one.id}"') for one in (old, new, other)] == [1, 1, 1]


def test_a_against_a_takes_sweeps_of_the_same_point_twice_and_says_the_ratios(shelf: Shelf, client: TestClient) -> None:
    once = add(shelf, plan())
    assert once.id not in client.get("/studies/aa").text
    twice = add(shelf, plan(cores=("", "0-1")))
    page = client.get("/studies/aa").text
    assert twice.id in page
    assert page.count("cores default") == len(STUDIES["aa"].metrics)
    assert "tied" in page


def test_engines_are_compared_where_a_sweep_has_several(shelf: Shelf, client: TestClient) -> None:
    add(shelf, plan(batch_sizes=(16,)))
    assert "Our own points compared" not in client.get("/studies/dlbench").text
    add(shelf, plan(batch_sizes=(16,), engines=("builtin", "onnxruntime")), name="bench-2")
    assert "Our results compared by engine" in client.get("/studies/dlbench").text


@pytest.mark.parametrize("name", ["nosuch", "%2e%2e", "<script>", "aa.toml"])
def test_an_unknown_study_is_a_page_that_says_so(client: TestClient, name: str) -> None:
    page = client.get(f"/studies/{name}")
    assert page.status_code == 404
    assert "<script>" not in page.text.split("<main", 1)[1]


def test_the_way_to_the_studies_is_on_every_page(client: TestClient) -> None:
    for address in ("/", "/devices", "/studies"):
        assert 'href="/studies"' in client.get(address).text
    assert 'href="/studies" aria-current="page"' in client.get("/studies/aa").text


def test_only_boards_of_the_study_stand_beside_its_published_rows(shelf: Shelf, client: TestClient) -> None:
    wanted = plan(models=("resnet50",))
    elsewhere = add(shelf, wanted, name="bench-1")
    board = shelf.add_sweep(plausible.xavier("xavier-1"), wanted, made=runs_of(wanted))
    main = parse(client.get("/studies/xavier-resnet50").text).one("main")
    own, others = (next(part for part in main.all("section") if part.attributes["aria-labelledby"] == name)
                   for name in ("table-heading", "others-heading"))  # fmt: skip
    assert "xavier-1" in own.text
    assert "bench-1" not in own.text
    assert "bench-1" in others.text
    assert "prov-published" not in str([part.attributes for part in others.all()])
    assert {elsewhere.id, board.id} == {
        link.attributes["href"].rpartition("/")[2] for link in main.all("a") if "/sweeps/" in link.attributes["href"]
    }


def test_the_chart_of_a_study_names_its_bars_and_keeps_published_ones_apart(shelf: Shelf, client: TestClient) -> None:
    wanted = plan(models=("resnet50",))
    shelf.add_sweep(plausible.xavier("xavier-1"), wanted, made=runs_of(wanted))
    figure = json.loads(client.get("/studies/xavier-resnet50/charts/study-figures?case=0").text)
    names = figure["layout"]["yaxis"]["ticktext"]
    assert [name.partition("<br>")[0] for name in names] == [
        "Jetson AGX Xavier, processor, ArmNN 21.02",
        "Jetson AGX Xavier, processor, TFLite 2.4.1",
        "xavier-1, builtin",
    ]
    drawn = {(trace["name"], trace["marker"]["color"]) for trace in figure["data"]}
    assert len({colour for _, colour in drawn}) == len({name for name, _ in drawn}) == 2
    for trace in figure["data"]:
        if trace["name"] == "published" and "y" in trace and trace["x"] != [None]:
            assert set(trace["y"]) <= {0, 1}
            assert set(trace["error_x"]["array"]) == {0.0}


@pytest.mark.parametrize(
    "address",
    ["/studies/nosuch/charts/study-figures", "/studies/aa/charts/nosuch", "/studies/aa/charts/study-figures?case=9"],
)
def test_an_unknown_chart_of_a_study_is_not_found(client: TestClient, address: str) -> None:
    assert client.get(address).status_code == 404
