"""A campaign's page: every device's sweep with its answer, and the devices compared."""

from __future__ import annotations

import json

from starlette.testclient import TestClient

from powerlab.store.reads.campaigns import campaign
from tests.dashboards import plausible
from tests.dashboards.campaigns import start_campaign
from tests.dashboards.conftest import Shelf
from tests.dashboards.page_tree import parse

PLAN = plausible.plan(batch_sizes=(1,), modes=("MAXN",))


def started(shelf: Shelf, *, done: int) -> str:
    """Return the id of a campaign on two boards, of which the first so many are done."""
    return start_campaign(shelf, PLAN, ("one", "other"), done=done)


def test_the_devices_of_a_campaign_are_compared(shelf: Shelf, client: TestClient) -> None:
    campaign_id = started(shelf, done=2)
    main = parse(client.get(f"/campaigns/{campaign_id}").text).one("main")
    assert main.one("h1").text == "resnet50: Each device of board jetson-agx-xavier"
    assert "2 of 2 sweeps over" in main.text
    assert "12 of 12 runs done" in main.text
    assert "Best efficiency over the 2 points in common:" in main.text
    (address,) = {part.attributes["data-figure"] for part in main.all("div") if "set-fronts" in str(part.attributes)}
    assert {trace["name"] for trace in json.loads(client.get(address).text)["data"]} == {"one", "other"}
    (link,) = [one.attributes["href"] for one in main.all("a") if one.text == "Ratios and points in common"]
    assert "one and other compared" in client.get(link).text


def test_a_campaign_in_progress_says_what_is_missing(shelf: Shelf, client: TestClient) -> None:
    page = client.get(f"/campaigns/{started(shelf, done=1)}").text
    assert "Two devices with runs are needed to compare them." in page
    assert "data-unfinished" in page


def test_a_sweep_leads_to_its_campaign_and_back(shelf: Shelf, client: TestClient) -> None:
    campaign_id = started(shelf, done=1)
    with shelf.store.session() as session:
        addresses = {f"/sweeps/{sweep.id}" for sweep in campaign(session, campaign_id).sweeps}
    for address in addresses:
        (link,) = [one for one in parse(client.get(address).text).all("a") if one.text == "Campaign"]
        assert link.attributes["href"] == f"/campaigns/{campaign_id}"
    back = {one.attributes.get("href") for one in parse(client.get(f"/campaigns/{campaign_id}").text).all("a")}
    assert addresses <= back


def test_campaigns_are_listed_where_one_chooses_what_to_compare(shelf: Shelf, client: TestClient) -> None:
    campaign_id = started(shelf, done=0)
    assert f'href="/campaigns/{campaign_id}"' in client.get("/compare").text


def test_an_unknown_campaign_is_a_page_that_says_so(client: TestClient) -> None:
    page = client.get("/campaigns/nosuch")
    assert page.status_code == 404
    assert "there is no campaign" in page.text
