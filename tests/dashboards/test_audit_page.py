"""The page of a run's audit: what was worked out again, what differs, and what MLPerf Power would say."""

from __future__ import annotations

import dataclasses

import pytest
from starlette.testclient import TestClient

from powerlab.domain.run import Run, Verdict
from powerlab.measure.audit.mlperf import MLPERF_RULES
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, add_recorded_run
from tests.dashboards.page_tree import Element, parse


def page_of(client: TestClient, run: Run) -> Element:
    reply = client.get(f"/runs/{run.id}/audit")
    assert reply.status_code == 200
    return parse(reply.text).one("main")


def rows(page: Element, heading: str) -> dict[str, list[str]]:
    """Return the cells of the table that has a column of that name, by the row's own name."""
    (table,) = [one for one in page.all("table") if heading in [cell.text for cell in one.one("thead").all("th")]]
    return {row.one("th").text: [cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")}


def test_a_run_whose_record_gives_everything(client: TestClient, shelf: Shelf) -> None:
    page = page_of(client, add_recorded_run(shelf))
    assert "Recomputing the run from its raw data reproduces every figure" in page.text
    figures = rows(page, "Recomputed")
    assert {cells[0] for cells in figures.values()} == {"equal"}
    assert "W measured" in figures["Power while running"][1]
    assert list(rows(page, "Ruling")) == [rule.name for rule in MLPERF_RULES]
    assert "MLPerf Power would reject this run" in page.text


def test_a_run_that_says_something_else_than_its_record(client: TestClient, shelf: Shelf) -> None:
    run = add_recorded_run(shelf, verdict=Verdict.FLAGGED, inference_count=9)
    page = page_of(client, run)
    assert "2 of " in page.text
    assert "items differ from the stored run" in page.text
    figures = rows(page, "Recomputed")
    assert figures["verdict"] == ["differs", "flagged", "valid"]
    assert figures["inferences"][0] == "differs"


@pytest.mark.parametrize("path", ["", "/audit"])
def test_there_is_no_such_run(client: TestClient, path: str) -> None:
    assert client.get(f"/runs/nobody{path}").status_code == 404


def test_a_run_that_cannot_be_audited_says_why(client: TestClient, shelf: Shelf) -> None:
    sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
    page = page_of(client, sweep.runs[0])
    assert "was measured by an older powerlab" in page.text
    assert not list(page.all("table"))


def test_the_page_of_a_run_leads_to_its_audit(client: TestClient, shelf: Shelf) -> None:
    run = add_recorded_run(shelf)
    links = [link.attributes["href"] for link in parse(client.get(f"/runs/{run.id}").text).all("a")]
    assert f"/runs/{run.id}/audit" in links


def test_a_run_that_another_version_measured_says_so(client: TestClient, shelf: Shelf) -> None:
    run = add_recorded_run(shelf)
    assert run.conditions is not None
    assert "whose method may differ" not in page_of(client, run).text
    older = add_recorded_run(shelf, conditions=dataclasses.replace(run.conditions, measured_with="0.0.1"))
    assert "measured with powerlab 0.0.1; this server runs " in page_of(client, older).text


def test_words_of_the_run_are_printed_as_words(client: TestClient, shelf: Shelf) -> None:
    run, hostile = add_recorded_run(shelf), "<script>alert(1)</script>"
    assert run.total is not None
    marked = add_recorded_run(shelf, total=dataclasses.replace(run.total, scope=hostile))
    assert hostile not in client.get(f"/runs/{marked.id}/audit").text
