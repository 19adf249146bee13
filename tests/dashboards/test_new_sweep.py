"""The form for a new sweep: what it offers, what it refuses and where, and the sweep that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from access_world import CONFIGURED, PATIENT, World, access_world
from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.domain.workload import WorkloadKind
from powerlab.store.reads import queries
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from powerlab_dashboards.pages.sweep_fields import FIELDS
from powerlab_dashboards.router import create_router
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf
from tests.dashboards.page_tree import Element, parse

OWN_PAGE = {"sec-fetch-site": "same-origin"}
ADDRESS = "/sweeps/new"


@pytest.fixture
def devices(shelf: Shelf) -> dict[str, str]:
    """Return a board with power modes and a laptop without, by name."""
    benches = (plausible.xavier(), plausible.laptop())
    return {
        bench.device.name: shelf.add_sweep(bench, plausible.plan(modes=("current",), threads=(1,))).device_id
        for bench in benches
    }


def shown(client: TestClient, **given: Any) -> Element:
    return parse(client.get(ADDRESS, params=given).text).one("main")


def filled(page: Element) -> dict[str, list[str]]:
    """Return what a browser would send of a form as it stands."""
    data: dict[str, list[str]] = {}
    for one in page.all("input"):
        kind = one.attributes.get("type", "text")
        if kind != "checkbox" or "checked" in one.attributes:
            data.setdefault(one.attributes["name"], []).append(one.attributes.get("value", "on"))
    for select in page.all("select"):
        options = select.all("option")
        chosen = [option for option in options if "selected" in option.attributes] or options[:1]
        data[select.attributes["name"]] = [chosen[0].text]
    start = next(button for button in page.all("button") if button.attributes.get("name") == "form_token")
    return data | {"form_token": [start.attributes["value"]]}


def marked(page: Element) -> dict[str, str]:
    """Return what is said to be wrong, by field."""
    return {
        one.attributes["id"].removesuffix("-wrong"): one.text
        for one in page.all("p")
        if one.attributes.get("class") == "wrong"
    }


def test_every_dimension_of_a_sweep_has_a_field() -> None:
    # How many devices train together follows from those that are chosen.
    assert {field.dimension for field in FIELDS} - {""} == {one.title for one in DIMENSIONS} - {"devices"}


def test_first_it_asks_for_devices(client: TestClient, devices: dict[str, str]) -> None:
    page = shown(client)
    assert {one.attributes["name"] for one in page.all("input")} == {"device"}
    assert "xavier-sim" in page.text


def test_without_devices_it_says_what_to_do(client: TestClient) -> None:
    assert "No devices yet" in shown(client).text


def test_it_offers_what_the_chosen_devices_can_all_do(client: TestClient, devices: dict[str, str]) -> None:
    def modes(*names: str) -> list[str]:
        page = shown(client, device=[devices[name] for name in names])
        return [one.attributes["value"] for one in page.all("input") if one.attributes["name"] == "modes"]

    assert modes("xavier-sim") == ["current", "MAXN", "MODE_15W", "MODE_10W"]
    assert modes("xavier-sim", "bench-1") == ["current"]


def test_it_says_how_many_runs_and_how_long_before_the_start(client: TestClient, devices: dict[str, str]) -> None:
    page = shown(client, device=devices["xavier-sim"])
    assert marked(page) == {}
    assert "xavier-sim: 6 runs, 2 points, about" in " ".join(page.text.split())
    form = filled(page) | {"models": ["resnet50", "alexnet"], "threads": ["1,2,4-6"], "batch_sizes": ["1,8"]}
    form.pop("form_token")
    assert "60 runs, 20 points" in " ".join(shown(client, **form).text.split())
    searched = shown(client, **form | {"search_percent": "search"})
    assert "at most 60 runs, 20 points" in " ".join(searched.text.split())


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"threads": ["1,x"]}, "threads", "give an integer from 1 on"),
        ({"threads": ["99"]}, "threads", "99"),
        ({"threads": [""]}, "threads", "such as 1,2,4-8"),
        ({"batch_sizes": ["0"]}, "batch_sizes", "at least 1"),
        ({"repeats": ["2"]}, "repeats", "at least 3"),
        ({"repeats": ["many"]}, "repeats", "whole number"),
        ({"models": []}, "models", "Choose at least one of: Models."),
        ({"models": ["resnet51"]}, "models", "cannot be chosen"),
        ({"modes": ["MAXN", "MODE_10W"], "threads": ["4"]}, "modes", "2 cores online"),
        ({"scenarios": ["server"]}, "scenarios", "needs a bound"),
        ({"latency_bound_ms": ["soon"]}, "latency_bound_ms", "not a number"),
        ({"latency_bound_ms": ["-1"]}, "latency_bound_ms", "latency bound"),
        ({"slices": ["2"]}, "slices", "shared evenly"),
        ({"spin_us": ["a"]}, "spin_us", "microseconds"),
        ({"cores": ["0-"]}, "cores", "not a list of cores"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(
    client: TestClient, devices: dict[str, str], changes: dict[str, list[str]], field: str, words: str
) -> None:
    form = filled(shown(client, device=devices["xavier-sim"])) | changes
    answer = client.post(ADDRESS, data=form, headers=OWN_PAGE)
    assert answer.status_code == 422
    said = marked(parse(answer.text).one("main"))
    assert words in said[field]
    assert set(said) <= {field}
    again = filled(parse(answer.text).one("main"))
    assert {name: again.get(name, []) for name in changes} == {
        name: [one for one in values if one != "resnet51"] for name, values in changes.items()
    }


def test_start_makes_one_sweep_however_often_it_is_pressed(
    shelf: Shelf, client: TestClient, devices: dict[str, str]
) -> None:
    form = filled(shown(client, device=devices["xavier-sim"]))
    form |= {"models": ["alexnet"], "modes": ["MAXN", "MODE_15W"], "threads": ["2,4"], "rigour": ["standard"]}
    sent = [client.post(ADDRESS, data=form, headers=OWN_PAGE, follow_redirects=False) for _ in range(2)]
    assert {one.status_code for one in sent} == {303}
    (address,) = {one.headers["location"] for one in sent}
    with shelf.store.session() as session:
        plan = queries.sweep(session, address.rpartition("/")[2]).plan
    assert (plan.models, plan.modes, plan.threads, plan.repeats) == (("alexnet",), ("MAXN", "MODE_15W"), (2, 4), 3)
    assert (plan.rigour, plan.duration_s, plan.warm_up_s) == ("standard", 60.0, 5.0)


def test_of_several_devices_each_gets_a_sweep(shelf: Shelf, client: TestClient, devices: dict[str, str]) -> None:
    form = filled(shown(client, device=list(devices.values())))
    sent = client.post(ADDRESS, data=form, headers=OWN_PAGE, follow_redirects=False)
    assert (sent.status_code, sent.headers["location"]) == (303, "/")
    with shelf.store.session() as session:
        newest = queries.list_sweeps(session)[:2]
    assert {one.device_id for one in newest} == set(devices.values())


@pytest.fixture
def trainers(shelf: Shelf) -> dict[str, str]:
    """Return two devices that can train together, by name."""
    found = {}
    for bench in (plausible.xavier(), plausible.laptop()):
        able = replace(bench.capabilities, workloads=tuple(WorkloadKind), clusters=True)
        plan = plausible.plan(modes=("current",), threads=(1,))
        found[bench.device.name] = shelf.add_sweep(replace(bench, capabilities=able), plan).device_id
    return found


def test_several_devices_train_as_one_sweep(shelf: Shelf, client: TestClient, trainers: dict[str, str]) -> None:
    chosen = shown(client, device=list(trainers.values()))
    assert "They train together, as one" in chosen.text
    assert "xavier-sim: 6 runs" in " ".join(shown(client, device=trainers["xavier-sim"], together="yes").text.split())
    form = filled(chosen) | {"together": ["yes"], "batch_sizes": ["3"]}
    refused = client.post(ADDRESS, data=form, headers=OWN_PAGE)
    assert refused.status_code == 422
    assert "everal devices train together, and infer by themselves" in refused.text
    form |= {"workload": ["train"], "optimizers": ["sgd"]}
    refused = client.post(ADDRESS, data=form, headers=OWN_PAGE)
    assert "batch of 3 cannot be shared evenly by 2 devices" in marked(parse(refused.text).one("main"))["batch_sizes"]
    form |= {"batch_sizes": ["4"], "threads": ["1"]}
    page = shown(client, **{name: values for name, values in form.items() if name != "form_token"})
    assert "bench-1, xavier-sim: 3 runs, 1 point" in " ".join(page.text.split())
    assert filled(page)["together"] == ["yes"]
    sent = [client.post(ADDRESS, data=form, headers=OWN_PAGE, follow_redirects=False) for _ in range(2)]
    assert {one.status_code for one in sent} == {303}
    (address,) = {one.headers["location"] for one in sent}
    with shelf.store.session() as session:
        record = queries.sweep(session, address.rpartition("/")[2])
    assert {record.device_name, *record.nodes} == set(trainers)
    assert record.plan.nodes == 2
    for device_id in trainers.values():
        history = " ".join(client.get(f"/devices/{device_id}/history").text.split())
        assert f'href="{address}"' in history
        assert ", ".join((record.device_name, *record.nodes)) in history


def test_too_many_fields_are_an_empty_form(client: TestClient, devices: dict[str, str]) -> None:
    assert client.get(f"{ADDRESS}?{'a=1&' * 600}").status_code == 200


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with access_world(tmp_path_factory.mktemp("new-sweep")) as made:
        yield made


@pytest.fixture
def browser(world: World) -> Iterator[TestClient]:
    app: FastAPI = create_app(world.store, Settings(operator_token=CONFIGURED, limits=PATIENT))
    app.include_router(create_router(world.store, app.state.authority))
    with TestClient(app, follow_redirects=False) as client:
        yield client


def log_in(browser: TestClient, world: World, who: str) -> None:
    assert browser.post("/login", data={"token": world.tokens[who]}, headers=OWN_PAGE).status_code == 303


def test_a_viewer_has_neither_the_form_nor_its_link(world: World, browser: TestClient) -> None:
    log_in(browser, world, "operator")
    form = filled(parse(browser.get(ADDRESS, params={"device": world.ids["device_id"]}).text).one("main"))
    assert f'href="{ADDRESS}"' in browser.get("/").text
    browser.cookies.clear()
    log_in(browser, world, "viewer")
    assert f'href="{ADDRESS}"' not in browser.get("/").text
    refused = browser.get(ADDRESS)
    assert refused.status_code == 403
    assert "needs the role operator" in refused.text
    assert browser.post(ADDRESS, data=form, headers=OWN_PAGE).status_code == 403


def test_a_form_of_no_page_of_this_server_is_refused(world: World, browser: TestClient) -> None:
    log_in(browser, world, "operator")
    form = filled(parse(browser.get(ADDRESS, params={"device": world.ids["device_id"]}).text).one("main"))
    refused = browser.post(ADDRESS, data=form | {"form_token": ["guess"]}, headers=OWN_PAGE)
    assert refused.status_code == 403
    assert "reload the page" in refused.text
