"""Take a picture of every dashboard page for docs/images/pages, over plausible data of the tests' own.

Usage: make pictures

Each page is taken at a desk (1440 px) and on a phone (390 px), light and dark; long pages are cut. The pictures are
lossless WebP, so that neighbouring colours stay apart. Needs Chromium on the PATH and the development dependencies.
"""

from __future__ import annotations

import io
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from powerlab.cli.commands.serve.server import compose
from powerlab_api.settings import Settings
from tests.browser.busy_fleet import NOW, busy_site
from tests.browser.conftest import CHROMIUM_ARGS, Site

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "pages"
READERS = {"desk": (1440, 1500), "phone": (390, 1400)}
"""Width of a window, and the height at which a page is cut, in px."""
SCHEMES = ("light", "dark")


@contextmanager
def _site() -> Iterator[Site]:
    """Serve a filled store on a free port."""
    with tempfile.TemporaryDirectory(prefix="powerlab-pictures-") as folder, socket.create_server(("", 0)) as waiting:
        site = busy_site(Path(folder) / "powerlab.db", f"http://127.0.0.1:{waiting.getsockname()[1]}")
        server = uvicorn.Server(uvicorn.Config(compose(site.shelf.store, Settings()), log_level="error"))
        thread = threading.Thread(target=server.run, args=([waiting],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        yield site
        server.should_exit = True
        thread.join(10)
        site.shelf.store.close()


def _take(browser: Browser, address: str, reader: str, scheme: str, target: Path) -> None:
    width, most = READERS[reader]
    dark = scheme == "dark"
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", locale="en-GB"
    )
    page.clock.set_fixed_time(NOW)
    page.goto(address)
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
    height = min(most, page.evaluate("() => document.documentElement.scrollHeight"))
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    page.close()
    Image.open(io.BytesIO(taken)).convert("RGB").save(target, lossless=True, method=6)


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
                    target = FOLDER / f"{name.replace(' ', '-')}-{reader}-{scheme}.webp"
                    _take(browser, address, reader, scheme, target)
            print(name, flush=True)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
