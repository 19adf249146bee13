"""Take a picture of every dashboard page for docs/images/pages, over plausible data of the tests' own.

Usage: make pictures

Each page is taken at a desk (1440 px) and on a phone (390 px), light and dark; long pages are cut. The pictures have a
palette, which is a third of the bytes. Needs Chromium on the PATH and the development dependencies.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from powerlab.cli.commands.serve.server import compose
from powerlab.store.maintenance.summary_worker import sum_up
from powerlab_api.settings import Settings
from tests.browser.conftest import CHROMIUM_ARGS, Site
from tests.dashboards.conftest import START, open_shelf

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "pages"
READERS = {"desk": (1440, 1500), "phone": (390, 1400)}
"""Width of a window, and the height at which a page is cut, in px."""
SCHEMES = ("light", "dark")
_COLOURS = 256


@contextmanager
def _site() -> Iterator[Site]:
    """Serve a filled store on a free port."""
    with tempfile.TemporaryDirectory(prefix="powerlab-pictures-") as folder:
        shelf = open_shelf(Path(folder) / "powerlab.db")
        server = uvicorn.Server(uvicorn.Config(compose(shelf.store, Settings()), port=0, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        site = Site(shelf, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
        sum_up(shelf.store)
        yield site
        server.should_exit = True
        thread.join(10)
        shelf.store.close()


def _take(browser: Browser, address: str, reader: str, scheme: str, target: Path) -> None:
    width, most = READERS[reader]
    dark = scheme == "dark"
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", locale="en-GB"
    )
    page.clock.set_fixed_time(START + timedelta(minutes=25))
    page.goto(address)
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
    height = min(most, page.evaluate("() => document.documentElement.scrollHeight"))
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    page.close()
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(
        _COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE
    ).save(target, optimize=True)


def main(wanted: list[str]) -> int:
    """Take the pictures, of the named pages only where some are named; returns the exit status."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("screenshots: Chromium is not installed; on Debian: apt install chromium", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _site() as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGS))
        for name, address in site.addresses.items():
            if wanted and name not in wanted:
                continue
            for scheme in SCHEMES:
                for reader in READERS:
                    target = FOLDER / f"{name.replace(' ', '-')}-{reader}-{scheme}.png"
                    _take(browser, address, reader, scheme, target)
            print(name, flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
