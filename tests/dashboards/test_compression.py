"""Pages travel compressed, but for those that a stranger could look into by that; and no page is too heavy."""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Iterator
from functools import cache

import pytest
from starlette.testclient import TestClient

from layer_profiles import layer_profile
from powerlab.cli.commands.serve.server import compose
from powerlab_api.settings import Settings
from powerlab_dashboards import assets
from powerlab_dashboards.language import LANGUAGES
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, open_shelf

BEFORE_CHARTS_BYTES = 150_000
WITH_CHARTS_BYTES = 600_000
PAGES = (
    "home", "devices", "device", "sweep", "run", "audit", "layers", "layer profile", "studies", "study", "models",
    "model", "new sweep", "comparison",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    shelf: Shelf = open_shelf(tmp_path_factory.mktemp("weight") / "powerlab.db")
    plan = plausible.plan(models=("resnet50", "alexnet"), threads=(1, 2), repeats=10)
    sweep = shelf.add_sweep(plausible.xavier(), plan)
    shelf.add_layers(sweep.device_id, layer_profile())
    with TestClient(compose(shelf.store, Settings())) as client:
        client.pages = {  # type: ignore[attr-defined]
            "home": "/",
            "devices": "/devices",
            "device": f"/devices/{sweep.device_id}",
            "sweep": f"/sweeps/{sweep.id}",
            "run": f"/runs/{sweep.runs[0].id}",
            "audit": f"/runs/{sweep.runs[0].id}/audit",
            "layers": "/layers",
            "layer profile": f"/layers/{layer_profile().id}",
            "studies": "/studies",
            "study": "/studies/xavier-resnet50",
            "models": "/models",
            "model": "/models/densenet121",
            "new sweep": "/sweeps/new",
            "comparison": f"/compare?a={sweep.id}:mode=MAXN&b={sweep.id}:mode=MODE_15W",
        }
        yield client
    shelf.store.close()


@cache
def transferred_file(client: TestClient, path: str) -> int:
    """Return how many bytes a file that many pages share takes compressed, whoever asks."""
    with client.stream("GET", path, headers={"accept-encoding": "gzip"}) as answer:
        assert answer.status_code == 200, path
        return sum(map(len, answer.iter_raw()))


@cache
def modules_of(client: TestClient, script: str) -> set[str]:
    """Return the addresses of the modules that a script brings along."""
    return {f"/static/{name}" for name in re.findall(r'from "\./([\w.]+)"', client.get(script).text)}


def weight(client: TestClient, address: str, language: str) -> tuple[int, int]:
    """Return how many bytes a browser gets for a page: without its charts, and with them."""
    headers = {"accept-encoding": "gzip", "accept": "text/html", "accept-language": language}

    def transferred(path: str) -> int:
        with client.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, path
            return sum(map(len, answer.iter_raw()))

    page = client.get(address, headers=headers).text
    links = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    scripts = {"/static/page.js"} & links
    while scripts:  # a module brings others along
        scripts = set().union(*(modules_of(client, script) for script in scripts)) - links
        links |= scripts
    charts = {link for link in links if assets.plotly_name() in link}
    figures = {html.unescape(figure) for figure in re.findall(r'data-figure="([^"]+)"', page)}
    before = transferred(address) + sum(transferred_file(client, link) for link in links - charts)
    return before, before + sum(transferred_file(client, link) for link in charts) + sum(map(transferred, figures))


@pytest.mark.parametrize(
    "language", [pytest.param(one, marks=[pytest.mark.campaign] * (one != "en")) for one in LANGUAGES]
)
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_heavy(name: str, language: str, served: TestClient) -> None:
    before, with_charts = weight(served, served.pages[name], language)  # type: ignore[attr-defined]
    assert before <= BEFORE_CHARTS_BYTES
    assert with_charts <= WITH_CHARTS_BYTES


def test_pages_and_figures_are_compressed(served: TestClient) -> None:
    sweep = served.pages["sweep"]  # type: ignore[attr-defined]
    for address in (sweep, f"{sweep}/charts/efficiency-heatmap?theme=dark"):
        answer = served.get(address, headers={"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip", address
        with served.stream("GET", address, headers={"accept-encoding": "gzip"}) as raw:
            assert gzip.decompress(b"".join(raw.iter_raw())) == answer.content
        assert "content-encoding" not in served.get(address, headers={"accept-encoding": "identity"}).headers


@pytest.mark.parametrize("address", ["/devices?name=secret", "/?q=secret", "/api/v1/devices"])
def test_what_repeats_its_address_and_the_api_are_not(address: str, served: TestClient) -> None:
    assert "content-encoding" not in served.get(address, headers={"accept-encoding": "gzip"}).headers
