"""The dashboard as a web server sees it: methods, headers, caches, and addresses nobody meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from powerlab_api.app import create_app
from powerlab_dashboards import assets
from powerlab_dashboards.charts.registry import RUN_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.router import create_router
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, Shelved, open_shelf

STATIC = ("page.js", "charts.js", "live.js", "tables.js", "powerlab.css", "mark.svg")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Shelved]]:
    """Return a client of the API and the dashboard as `powerlab serve` puts them together, and a sweep in the store."""
    shelf = open_shelf(tmp_path_factory.mktemp("served") / "powerlab.db")
    sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)))
    app: FastAPI = create_app(shelf.store)
    app.include_router(create_router(shelf.store))
    with TestClient(app) as client:
        yield client, sweep
    shelf.store.close()


def addresses(sweep: Shelved) -> list[str]:
    return ["/", "/devices", f"/sweeps/{sweep.id}", f"/runs/{sweep.runs[0].id}", "/nowhere"]


def figures(sweep: Shelved) -> list[str]:
    return [
        *(f"/sweeps/{sweep.id}/charts/{name}" for name in SWEEP_CHARTS),
        *(f"/runs/{sweep.runs[0].id}/charts/{name}" for name in RUN_CHARTS),
    ]


def test_every_page_and_figure_carries_the_headers_that_protect_it(served: tuple[TestClient, Shelved]) -> None:
    client, sweep = served
    for address in [*addresses(sweep), *figures(sweep), "/static/none.js", "/sweeps/none", "/runs/none/charts/x"]:
        headers = client.get(address).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'", address
        assert "unsafe" not in policy["script-src"]
        assert policy["form-action"] == "'self'"
        assert policy["base-uri"] == policy["frame-ancestors"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-cache"
        assert headers["referrer-policy"] == "same-origin"


def test_head_answers_like_get_without_the_body(served: tuple[TestClient, Shelved]) -> None:
    client, sweep = served
    for address in [*addresses(sweep), *figures(sweep), *(f"/static/{name}" for name in STATIC)]:
        get, head = client.get(address), client.head(address)
        assert head.status_code == get.status_code, address
        assert head.content == b""
        for name in ("content-type", "content-length", "cache-control", "etag", "content-security-policy"):
            assert head.headers.get(name) == get.headers.get(name), (address, name)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_pages_only_read(method: str, served: tuple[TestClient, Shelved]) -> None:
    client, sweep = served
    for address in [*addresses(sweep), *figures(sweep), "/static/page.js"]:
        answer = client.request(method, address)
        assert answer.status_code == 405, address
        assert answer.headers["content-type"] == "application/problem+json"
        assert "GET" in answer.headers["allow"]


@pytest.mark.parametrize("method", ["HEAD", "DELETE"])
def test_what_the_api_does_not_do_at_an_address_is_not_said_to_be_missing(
    method: str, served: tuple[TestClient, Shelved]
) -> None:
    client, _ = served
    answer = client.request(method, "/api/v1/devices")
    assert answer.status_code in {200, 405}
    assert answer.status_code == 200 or "GET" in answer.headers["allow"]


@pytest.mark.parametrize("name", STATIC)
def test_a_browser_that_has_a_file_is_sent_it_again_only_when_it_changed(
    name: str, served: tuple[TestClient, Shelved], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, _ = served
    first = client.get(f"/static/{name}")
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = client.get(f"/static/{name}", headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
        assert again.headers["vary"] == "accept-encoding"
    for unknown in ('"0123456789abcdef"', "", tag[:-2], "nonsense"):
        assert client.get(f"/static/{name}", headers={"if-none-match": unknown}).content == first.content


def test_files_with_other_content_have_other_tags() -> None:
    tags = [file.tag for file in assets.files().values()]
    assert len(set(tags)) == len(tags)
    assert all(re.fullmatch(r'"[0-9a-f]{16}"', tag) for tag in tags)


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5, br", True),
        ("GZIP", True),
        ("gzip; q=1", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000, identity", False),
        ("br", False),
        ("x-notgzip", False),
        ("gzip;q=nonsense", False),
        ("", False),
    ],
)
def test_a_browser_gets_gzip_only_if_it_takes_it(
    accepted: str, packed: bool, served: tuple[TestClient, Shelved]
) -> None:
    client, _ = served
    answer = client.get("/static/powerlab.css", headers={"accept-encoding": accepted})
    assert ("content-encoding" in answer.headers) == packed
    assert answer.content == assets.files()["powerlab.css"].content


@pytest.mark.parametrize(
    "query", ["theme=%00", "theme=", "theme=dark&theme=light", "theme=" + "x" * 5000, "theme[]=1", "%"]
)
def test_an_unknown_theme_is_the_light_one(query: str, served: tuple[TestClient, Shelved]) -> None:
    client, sweep = served
    for address in figures(sweep):
        assert client.get(f"{address}?{query}").json() == client.get(address).json()


@pytest.mark.parametrize("narrow", ["maybe", "2", "", "%00"])
def test_a_width_that_is_neither_is_a_problem(narrow: str, served: tuple[TestClient, Shelved]) -> None:
    client, sweep = served
    for address in figures(sweep):
        answer = client.get(f"{address}?narrow={narrow}")
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert "narrow" in answer.json()["detail"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text(max_size=40), prefix=st.sampled_from(["/", "/sweeps/", "/runs/", "/static/", "/sweeps/x/charts/"]))
def test_no_address_makes_the_server_fail(path: str, prefix: str, served: tuple[TestClient, Shelved]) -> None:
    client, _ = served
    answer = client.get(prefix + quote(path, safe="", errors="replace"))
    assert answer.status_code in {200, 404, 405}
    if answer.status_code == 404:
        assert "Page not found" in answer.text or answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "path", ["%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5crouter.py", "page.js%00", "page.js/", ".", ""]
)
def test_static_files_are_looked_up_and_never_opened_by_name(path: str, served: tuple[TestClient, Shelved]) -> None:
    client, _ = served
    answer = client.get(f"/static/{path}", follow_redirects=False)
    assert answer.status_code in {307, 404}
    assert "root:" not in answer.text


def test_a_refreshed_page_holds_every_part_that_the_open_one_exchanges(shelf: Shelf, client: TestClient) -> None:
    """The page exchanges its [data-live] parts by identifier: before, while and after a sweep they must be the same."""

    def parts() -> dict[str, str]:
        html = client.get(f"/sweeps/{sweep.id}").text
        return {match[1]: match[0] for match in re.finditer(r'<\w+ id="([\w-]+)" data-live>', html)}

    sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)), stored=0)
    empty = parts()
    assert {"progress", "answer", "points", "runs", "verdicts"} <= set(empty)
    assert "data-unfinished" in client.get(f"/sweeps/{sweep.id}").text
    assert client.get(f"/sweeps/{sweep.id}/charts/heatmap").json() == {"reason": "No runs have finished yet."}
    shelf.finish(sweep)
    assert parts() == empty
    assert "data-unfinished" not in client.get(f"/sweeps/{sweep.id}").text
    assert set(client.get(f"/sweeps/{sweep.id}/charts/heatmap").json()) == {"data", "layout"}


def test_the_same_store_gives_the_same_bytes(served: tuple[TestClient, Shelved]) -> None:
    """A chart is drawn again only if its text changed, so that text must not depend on the moment."""
    client, sweep = served
    for address in [*addresses(sweep), *figures(sweep)]:
        assert client.get(address).content == client.get(address).content
