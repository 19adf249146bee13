"""A real server and a real browser: Debian's Chromium, driven by playwright."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from layer_profiles import layer_profile
from powerlab.cli.commands.serve.server import compose
from powerlab.domain.layers import Roof
from powerlab_api.settings import Settings
from requires import require_chromium
from tests.dashboards import plausible
from tests.dashboards.campaigns import start_campaign
from tests.dashboards.conftest import Shelf, add_recorded_run, open_shelf

MEASURED_ID = "00000000-0000-4000-8000-000000000007"
ROOF = Roof(peak_gflops=200.0, memory_gb_per_s=20.0)
PATIENCE_MS = 60_000
"""A page that hears events asks every 30 s besides, waits 15 s for an answer, and the machine may be busy."""
CLOSING_S = 60.0
"""A browser that takes longer to close waits for something that never comes."""
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)


class Site:
    """A running server over a filled store; ``addresses`` holds one page of every kind."""

    def __init__(self, shelf: Shelf, url: str) -> None:
        self.shelf = shelf
        self.url = url
        simulated = shelf.add_sweep(plausible.xavier(), plausible.plan(models=("resnet50", "alexnet")))
        bare = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",)))
        laptop = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), threads=(2, 10, 1)))
        shelf.add_layers(simulated.device_id, layer_profile(), layer_profile(MEASURED_ID, roof=ROOF))
        spread = plausible.plan(models=("mobilenetv2",), modes=("MAXN", "MODE_15W"))
        campaign_id = start_campaign(shelf, spread, ("nx-1", "nx-2", "nx-3"), done=3, board="jetson-xavier-nx")
        self.recorded = add_recorded_run(shelf)
        self.device_id = simulated.device_id
        self.addresses = {
            "home": f"{url}/",
            "devices": f"{url}/devices",
            "device": f"{url}/devices/{simulated.device_id}",
            "device history": f"{url}/devices/{simulated.device_id}/history",
            "device modes": f"{url}/devices/{simulated.device_id}/modes",
            "device sensors": f"{url}/devices/{bare.device_id}/sensors",
            "device bookings": f"{url}/devices/{bare.device_id}/bookings",
            "simulated": f"{url}/sweeps/{simulated.id}",
            "bare": f"{url}/sweeps/{bare.id}",
            "laptop": f"{url}/sweeps/{laptop.id}",
            "run": f"{url}/runs/{simulated.runs[0].id}",
            "recorded run": f"{url}/runs/{self.recorded.id}",
            "sweep runs": f"{url}/sweeps/{laptop.id}/runs",
            "audit": f"{url}/runs/{self.recorded.id}/audit",
            "counter run": f"{url}/runs/{laptop.runs[0].id}",
            "models": f"{url}/models",
            "model": f"{url}/models/resnet50",
            "model table": f"{url}/models/densenet121?view=table",
            "new sweep": f"{url}/sweeps/new?device={simulated.device_id}",
            "studies": f"{url}/studies",
            "study": f"{url}/studies/xavier-resnet50",
            "layers": f"{url}/layers",
            "layer profile": f"{url}/layers/{MEASURED_ID}",
            "compare": f"{url}/compare",
            "campaign": f"{url}/campaigns/{campaign_id}",
            "trends": f"{url}/trends",
            "jobs": f"{url}/jobs",
            "admin": f"{url}/admin",
            "admin log": f"{url}/admin/log",
            "comparison": f"{url}/compare?a={simulated.id}:mode=MAXN&b={simulated.id}:mode=MODE_15W",
        }


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve the dashboard on a free port until the last test is over."""
    shelf = open_shelf(tmp_path_factory.mktemp("browser") / "powerlab.db")
    app = compose(shelf.store, Settings())
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive(), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Site(shelf, f"http://127.0.0.1:{port}")
    server.should_exit = True
    thread.join()
    shelf.store.close()


@contextmanager
def closed_within(seconds: float) -> Iterator[None]:
    """End playwright's driver, and the browser with it, where the block takes longer, and fail."""
    ended = threading.Event()

    def end() -> None:
        ended.set()
        for driver in psutil.Process().children():
            if Path(driver.exe()).name == "node":
                for process in (*driver.children(recursive=True), driver):
                    process.kill()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    assert not ended.is_set(), f"the browser did not close within {seconds:.0f} s"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests."""
    executable = Path(require_chromium())
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGS))
        yield started
        with closed_within(CLOSING_S):
            started.close()


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> dict[str, BrowserContext]:
    """Return a reader who likes it light and one who likes it dark; each keeps a cache from page to page."""
    return {"light": browser.new_context(color_scheme="light"), "dark": browser.new_context(color_scheme="dark")}


OpenPage = Callable[..., Page]


def trouble(request: Request) -> list[str]:
    """Return what is wrong with a request that failed; who leaves a page also leaves what it streams and fetches."""
    left = request.resource_type in {"eventsource", "fetch"} and request.failure == "net::ERR_ABORTED"
    return [] if left else [f"{request.url} {request.failure}"]


@pytest.fixture
def open_page(contexts: dict[str, BrowserContext]) -> Iterator[OpenPage]:
    """Return a function that opens an address; every console error and failed request fails the test."""
    pages: list[Page] = []
    troubles: list[str] = []

    def opened(address: str, *, width: int = 1600, scheme: str = "light") -> Page:
        page = contexts[scheme].new_page()
        page.set_viewport_size({"width": width, "height": 900})
        pages.append(page)
        page.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("requestfailed", lambda request: troubles.extend(trouble(request)))
        page.goto(address)
        page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
        return page

    yield opened
    for page in pages:
        page.close()
    assert troubles == []


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    """Return an empty page whose console is nobody's concern."""
    page = browser.new_page()
    yield page
    page.close()
