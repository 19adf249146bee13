"""Take a picture of every dashboard page of a running server.

Usage: scripts/screenshots.py URL OUTDIR

Each page is taken whole, light and dark, 1600 px and 400 px wide: home, the devices, one of them, the newest finished
sweep, and its first run with a power trace. Needs Chromium on the PATH and the ``playwright`` Python package.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = (1600, 400)
SCHEMES = ("light", "dark")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)


def main(url: str, folder: Path) -> int:
    """Take the pictures and return the exit status."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("screenshots: Chromium is not installed; on Debian: apt install chromium", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGS))
        pages = dict(_addresses(browser, url.rstrip("/")))
        for scheme in SCHEMES:
            for width in WIDTHS:
                for name, address in pages.items():
                    target = folder / f"{name}-{scheme}-{width}.png"
                    _take(browser, address, scheme, width, target)
                    print(target)
        browser.close()
    return 0


def _addresses(browser: Browser, url: str) -> Iterator[tuple[str, str]]:
    """Yield each page's name and address, followed from link to link as a reader would."""
    page = browser.new_page()
    yield "home", f"{url}/"
    yield "devices", f"{url}/devices"
    page.goto(f"{url}/devices")
    for device in _links(page, "/devices/")[:1]:
        yield "device", device
    page.goto(f"{url}/")
    sweeps = _links(page, "/sweeps/")
    for sweep in sweeps:
        page.goto(sweep)
        runs = _links(page, "/runs/")
        if runs and page.locator("main[data-unfinished]").count() == 0:
            yield "sweep", sweep
            yield "run", runs[0]
            break
    page.close()


def _links(page: Page, start: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(f'main a[href^="{start}"]', "links => links.map(link => link.href)")
    return found


def _take(browser: Browser, address: str, scheme: str, width: int, target: Path) -> None:
    page = browser.new_page(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page.goto(address)
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
    page.screenshot(path=target, full_page=True)
    page.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
