"""Static files: what is sent, and what a browser may keep."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import powerlab_dashboards
from powerlab_dashboards import assets

OWN = sorted(path.name for path in (Path(powerlab_dashboards.__file__).parent / "static").iterdir())


@pytest.mark.parametrize("name", OWN)
def test_own_files_are_served_and_asked_for_again(name: str, client: TestClient) -> None:
    answer = client.get(f"/static/{name}")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = client.get(f"/static/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_scripts_are_sent_as_scripts(client: TestClient) -> None:
    assert client.get("/static/page.js").headers["content-type"] == "text/javascript; charset=utf-8"
    assert client.get("/static/powerlab.css").headers["content-type"] == "text/css; charset=utf-8"


def test_plotly_may_be_kept_for_good(client: TestClient) -> None:
    name = assets.plotly_name()
    answer = client.get(f"/static/{name}")
    assert answer.content == assets.PLOTLY.read_bytes()
    assert "immutable" in answer.headers["cache-control"]
    assert client.get(f"/static/{name}", headers={"if-none-match": answer.headers["etag"]}).status_code == 304


def test_files_travel_compressed_only_where_the_browser_takes_that(client: TestClient) -> None:
    plain = client.get("/static/powerlab.css", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    packed = client.get("/static/powerlab.css", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert packed.content == plain.content
    kept = assets.files()["powerlab.css"]
    assert gzip.decompress(kept.compressed) == kept.content


@pytest.mark.parametrize("name", ["..%2frouter.py", "%2e%2e/router.py", "nothing.js", "__init__.py"])
def test_nothing_else_can_be_fetched(name: str, client: TestClient) -> None:
    assert client.get(f"/static/{name}").status_code == 404


def test_no_script_of_the_dashboard_reaches_outside_it() -> None:
    for name in OWN:
        text = assets.files()[name].content.decode()
        assert "https://" not in text
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
