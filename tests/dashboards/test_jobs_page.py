"""The page of jobs: what waits for what, what ended how, filters in the address, and the buttons."""

from __future__ import annotations

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from powerlab.protocol.messages import Finish, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store.reads import queries
from powerlab.store.writes import jobs
from powerlab.store.writes.sweeps import submit_sweep
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf, Shelved
from tests.dashboards.page_tree import Element, parse

PLAN = plausible.plan(modes=("current",), batch_sizes=(1,))


def rows(client: TestClient, query: str = "") -> list[Element]:
    main = parse(client.get(f"/jobs{query}").text).one("main")
    return [row for table in main.all("table") for row in table.one("tbody").all("tr")]


@pytest.fixture
def running(shelf: Shelf) -> Shelved:
    """Return a sweep that runs, behind which two of ben's wait; another one failed."""
    failed = shelf.add_sweep(plausible.laptop("failing"), PLAN, stored=2)
    with shelf.store.write() as session:
        said = Finish(fencing_token=failed.lease.fencing_token, state="failed", detail="the worker was killed")
        jobs.finish(session, failed.device_id, failed.lease.job_id, said, START)
    held = shelf.add_sweep(plausible.laptop("busy"), PLAN, stored=2)
    with shelf.store.write() as session:
        for _ in range(2):
            request = SweepRequest(device_id=held.device_id, plan=PLAN)
            submit_sweep(session, request, START + timedelta(hours=1), by="ben")
    return held


def test_jobs_say_what_they_wait_for_and_why_they_ended(client: TestClient, running: Shelved) -> None:
    texts = [row.text for row in rows(client)]
    assert len(texts) == 4
    assert sum("busy, which measures another sweep" in text for text in texts) == 2
    assert sum("the worker was killed" in text and "failed" in text for text in texts) == 1
    assert sum("since" in text and "running" in text for text in texts) == 1


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("?state=queued", 2),
        ("?state=running", 1),
        ("?state=failed", 1),
        ("?state=open", 3),
        ("?state=paused", 0),
        ("?submitter=ben", 2),
        ("?submitter=ben&state=failed", 0),
        ("?state=nosuch&after=nonsense", 4),
    ],
)
def test_the_address_says_which_jobs(client: TestClient, running: Shelved, query: str, number: int) -> None:
    assert len(rows(client, query)) == number
    if not number:
        assert "No job is like that." in client.get(f"/jobs{query}").text


def test_jobs_of_a_device(client: TestClient, running: Shelved) -> None:
    assert len(rows(client, f"?device={running.device_id}")) == 3


def test_the_states_are_counted(client: TestClient, running: Shelved) -> None:
    main = parse(client.get("/jobs").text).one("main")
    assert [link.text for link in main.one("nav").all("a")] == [
        "all 4", "not over 3", "queued 2", "running 1", "paused 0", "cancelled 0", "finished 0", "failed 1",
    ]  # fmt: skip


def test_a_button_leads_back_to_the_same_list(shelf: Shelf, client: TestClient, running: Shelved) -> None:
    (row,) = rows(client, "?state=running")
    (form,) = row.all("form")
    fields = {field.attributes["name"]: field.attributes["value"] for field in form.all("input")}
    answer = client.post(form.attributes["action"], data=fields, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/jobs?state=running"
    with shelf.store.session() as session:
        assert queries.sweep(session, running.id).state is SweepState.PAUSED
    elsewhere = client.post(
        form.attributes["action"].replace("pause", "resume"),
        data=fields | {"back": "https://elsewhere.example"},
        follow_redirects=False,
    )
    assert elsewhere.headers["location"] == "/"


def test_older_jobs_are_on_further_pages(shelf: Shelf, client: TestClient) -> None:
    held = shelf.add_sweep(plausible.laptop(), PLAN, stored=1)
    with shelf.store.write() as session:
        for number in range(60):
            request = SweepRequest(device_id=held.device_id, plan=PLAN)
            submit_sweep(session, request, START + timedelta(minutes=number + 5), by="ben")
    page = client.get("/jobs?submitter=ben")
    (older,) = [a.attributes["href"] for a in parse(page.text).one("main").all("a") if a.text == "older jobs"]
    seen = {row.one("th").one("a").attributes["href"] for query in ("?submitter=ben",) for row in rows(client, query)}
    rest = {row.one("th").one("a").attributes["href"] for row in rows(client, older.removeprefix("/jobs"))}
    assert (len(seen), len(rest), len(seen | rest)) == (50, 10, 60)
    assert len(page.content) < 150_000
