"""Errors as a browser's user meets them: pages, while programs get problems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from powerlab.cli.commands.serve.server import compose
from powerlab.store.reads import queries
from powerlab_api.settings import Settings
from tests.dashboards.conftest import Shelf

BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture
def served(shelf: Shelf) -> Iterator[TestClient]:
    with TestClient(compose(shelf.store, Settings()), raise_server_exceptions=False) as client:
        yield client


def test_a_failure_is_a_page_for_people_and_a_problem_for_programs(
    served: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("an accident")

    monkeypatch.setattr(queries, "list_sweeps", fail)
    page = served.get("/", headers=BROWSER)
    assert page.status_code == 500
    assert "<h1>The server failed</h1>" in page.text
    assert "its log says why" in page.text
    assert "an accident" not in page.text
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"]
    problem = served.get("/api/v1/sweeps", headers=BROWSER)
    assert problem.headers["content-type"] == "application/problem+json"
    assert served.get("/", headers={"accept": "application/json"}).json()["status"] == 500


def test_a_value_that_does_not_fit_is_a_page(served: TestClient) -> None:
    page = served.get("/sweeps/x/runs?after=many", headers=BROWSER)
    assert page.status_code == 422
    assert "The request is wrong at query.after" in page.text


def test_it_is_in_the_visitors_language_and_leads_back(served: TestClient) -> None:
    page = served.get("/sweeps/x/runs?after=many", headers=BROWSER | {"accept-language": "zh"})
    assert '<html lang="zh-CN"' in page.text
    assert '<span lang="en">The request is wrong' in page.text
    assert '<a href="/">' in page.text


def test_what_works_passes_unchanged(served: TestClient) -> None:
    page = served.get("/", headers=BROWSER)
    assert page.status_code == 200
    assert "<h1" in page.text
    assert served.get("/static/page.js", headers=BROWSER).status_code == 200
