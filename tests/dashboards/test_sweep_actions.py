"""The buttons of a sweep: who has them, what they do, and that no other page can press them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from access_world import CONFIGURED, PATIENT, World, access_world
from powerlab.protocol.messages import Finish, SweepRequest
from powerlab.store.writes import jobs
from powerlab.store.writes.sweeps import create_sweep
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from powerlab_dashboards.router import create_router
from server_examples import PLAN
from tests.dashboards.page_tree import Element, parse

OWN_PAGE = {"sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with access_world(tmp_path_factory.mktemp("actions")) as made:
        yield made


def served(world: World, token: str | None = CONFIGURED) -> FastAPI:
    app = create_app(world.store, Settings(operator_token=token, limits=PATIENT))
    app.include_router(create_router(world.store, app.state.authority))
    return app


@pytest.fixture
def browser(world: World) -> Iterator[TestClient]:
    with TestClient(served(world), follow_redirects=False) as client:
        yield client


@pytest.fixture
def local(world: World) -> Iterator[TestClient]:
    """Return somebody at a server that asks nobody for a token."""
    with TestClient(served(world, None), follow_redirects=False) as client:
        yield client


@pytest.fixture
def sweep_id(world: World) -> str:
    with world.store.write() as session:
        return create_sweep(session, SweepRequest(device_id=world.ids["device_id"], plan=PLAN), world.store.clock())


def log_in(browser: TestClient, world: World, who: str) -> None:
    sent = browser.post("/login", data={"token": world.tokens[who]}, headers=OWN_PAGE)
    assert sent.status_code == 303


def forms(client: TestClient, sweep_id: str) -> dict[str, Element]:
    """Return the forms of a sweep's page by what they do."""
    answer = client.get(f"/sweeps/{sweep_id}")
    assert answer.status_code == 200
    found = [form for form in parse(answer.text).all("form") if form.attributes["action"].startswith("/sweeps/")]
    found = [form for form in found if form.attributes["method"] == "post"]
    return {form.attributes["action"].rpartition("/")[2]: form for form in found}


def send(client: TestClient, form: Element, **changed: str) -> Any:
    """Send a form as a browser does."""
    data = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")}
    return client.post(form.attributes["action"], data=data | changed, headers=OWN_PAGE)


def state(world: World, sweep_id: str) -> dict[str, Any]:
    record: dict[str, Any] = world.ask("viewer", "GET", f"/sweeps/{sweep_id}").json()
    return record


@pytest.mark.campaign
@pytest.mark.parametrize("who", ["operator", "admin", "configured"])
def test_whoever_may_pauses_resumes_and_cancels(world: World, browser: TestClient, sweep_id: str, who: str) -> None:
    log_in(browser, world, who)
    for pressed, others, then in (
        ("pause", {"cancel"}, "paused"),
        ("resume", {"cancel"}, "queued"),
        ("cancel", {"pause"}, "cancelled"),
    ):
        found = forms(browser, sweep_id)
        assert set(found) == {pressed, "clone"} | others
        sent = send(browser, found[pressed])
        assert (sent.status_code, sent.headers["location"]) == (303, f"/sweeps/{sweep_id}")
        assert state(world, sweep_id)["state"] == then
    name = "configured token" if who == "configured" else who
    assert state(world, sweep_id)["detail"] == f"cancelled by {name}"
    assert set(forms(browser, sweep_id)) == {"clone"}


def test_a_viewer_has_no_buttons_and_could_not_press_them(world: World, browser: TestClient, sweep_id: str) -> None:
    log_in(browser, world, "operator")
    operators = forms(browser, sweep_id)
    browser.cookies.clear()
    log_in(browser, world, "viewer")
    assert forms(browser, sweep_id) == {}
    for form in operators.values():
        refused = send(browser, form)
        assert refused.status_code == 403
        assert "needs the role operator" in parse(refused.text).text
    assert state(world, sweep_id)["state"] == "queued"


@pytest.mark.parametrize("who", ["nobody", "agent", "revoked"])
def test_who_is_no_person_of_this_server_presses_nothing(
    world: World, browser: TestClient, sweep_id: str, who: str
) -> None:
    headers = {} if who == "nobody" else {"authorization": f"Bearer {world.tokens[who]}"}
    answer = browser.post(f"/sweeps/{sweep_id}/cancel", headers=OWN_PAGE | headers)
    assert answer.status_code in {401, 403}
    assert state(world, sweep_id)["state"] == "queued"


def test_on_loopback_everybody_has_buttons(world: World, local: TestClient, sweep_id: str) -> None:
    assert send(local, forms(local, sweep_id)["pause"]).status_code == 303
    assert state(world, sweep_id)["detail"] == "paused by local user"


def test_a_form_of_another_login_or_of_no_page_is_refused(
    world: World, browser: TestClient, local: TestClient, sweep_id: str
) -> None:
    strangers = forms(local, sweep_id)["cancel"]
    log_in(browser, world, "operator")
    pause = forms(browser, sweep_id)["pause"]
    for form, changed in ((strangers, {}), (pause, {"form_token": "guess"}), (pause, {"form_token": "\udcff é"})):
        data = {one.attributes["name"]: one.attributes["value"] for one in form.all("input")} | changed
        refused = browser.post(
            form.attributes["action"], data={k: v.encode(errors="replace") for k, v in data.items()}, headers=OWN_PAGE
        )
        assert refused.status_code == 403
        assert "reload the page" in parse(refused.text).text
    assert browser.post(f"/sweeps/{sweep_id}/pause", content=b"\xff=%", headers=OWN_PAGE).status_code == 403
    world.clock.forward(1)
    log_in(browser, world, "operator")  # a new cookie: what the old login's pages held is worth nothing
    assert send(browser, pause).status_code == 403
    assert state(world, sweep_id)["state"] == "queued"


def test_another_sites_page_is_refused_even_with_the_word(world: World, local: TestClient, sweep_id: str) -> None:
    pause = forms(local, sweep_id)["pause"]
    data = {one.attributes["name"]: one.attributes["value"] for one in pause.all("input")}
    evil = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    assert local.post(pause.attributes["action"], data=data, headers=evil).status_code == 403
    assert state(world, sweep_id)["state"] == "queued"


def test_a_page_that_is_out_of_date_gets_a_sentence(world: World, local: TestClient, sweep_id: str) -> None:
    old = forms(local, sweep_id)
    assert send(local, old["cancel"]).status_code == 303
    assert send(local, old["cancel"]).status_code == 303  # twice is once
    refused = send(local, old["pause"])
    page = parse(refused.text)
    assert refused.status_code == 409
    assert "is cancelled; only one that is not over can be paused" in page.text
    assert f"/sweeps/{sweep_id}" in {link.attributes.get("href") for link in page.all("a")}


def test_a_sweep_is_cloned_once_however_often_the_button_is_pressed(
    world: World, local: TestClient, sweep_id: str
) -> None:
    clone = forms(local, sweep_id)["clone"]
    first, second = send(local, clone), send(local, clone)
    assert first.status_code == second.status_code == 303
    assert first.headers["location"] == second.headers["location"] != f"/sweeps/{sweep_id}"
    made = state(world, first.headers["location"].rpartition("/")[2])
    assert (made["state"], made["cloned_from"], made["submitter"]) == ("queued", sweep_id, "local user")
    again = send(local, forms(local, sweep_id)["clone"])  # a page that was loaded anew is another request
    assert again.headers["location"] != first.headers["location"]
    assert made["plan"] == state(world, sweep_id)["plan"]


def test_what_is_not_there_cannot_be_changed(local: TestClient, sweep_id: str) -> None:
    pause = forms(local, sweep_id)["pause"]
    pause.attributes["action"] = "/sweeps/nothing/pause"
    assert send(local, pause).status_code == 404
    pause.attributes["action"] = f"/sweeps/{sweep_id}/explode"
    assert send(local, pause).status_code == 404
    pause.attributes["action"] = "/sweeps/%00/clone"
    assert send(local, pause).status_code == 404
    assert local.get(f"/sweeps/{sweep_id}/pause").status_code == 404


def test_a_sweep_that_is_over_is_given_three_more_repeats(world: World, local: TestClient, sweep_id: str) -> None:
    assert "repeat" not in forms(local, sweep_id)
    with world.store.write() as session:
        held = jobs.lease_sweep(session, sweep_id, world.store.clock(), 60.0)
        message = Finish(fencing_token=held.fencing_token, state="failed", detail="")
        jobs.finish(session, world.ids["device_id"], held.job_id, message, world.store.clock())
    form = forms(local, sweep_id)["repeat"]
    assert form.text == "Add 3 repeats"
    assert send(local, form).status_code == 303
    assert state(world, sweep_id)["state"] == "queued"
    assert send(local, form).status_code == 409
