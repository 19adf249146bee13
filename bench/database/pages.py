"""How heavy and how quick every page is over a million runs and a trace of a million samples, in a real browser.

    python -m bench.database.pages [--runs 1000000] [--samples 1000000] [--times 15] [--only PATTERN] [--keep DATABASE]

Fills a PostgreSQL of its own (which must be installed; 7 GB, about three minutes), starts a server over it, and opens
each page in headless Chromium with an empty cache. Printed are the bytes as transferred (page, styles and scripts,
everything with charts), the first contentful paint, how long a click on a heading that sorts or on something that
unfolds takes until the next frame, and how long a zoom into the trace takes until it is drawn: median and 95th
percentile. Goals: 150 KB, 600 KB with charts, 1 s, 100 ms, 150 ms.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright
from sqlalchemy import text

from bench.database.big_database import database, fill, served
from bench.database.bulk.million import lengthen
from bench.database.bulk.multiplying import multiply
from bench.database.bulk.questions import Known, known
from powerlab.store import Store, open_store

BEFORE_KB, WITH_KB, PAINT_MS, CLICK_MS, ZOOM_MS = 150.0, 600.0, 1000.0, 100.0, 150.0
_COPIES = 50
_CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
_PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) done(entry.startTime);
}).observe({type: "paint", buffered: true}))"""
_CLICK = """async (element) => {
  const started = performance.now();
  element.click();
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - started;
}"""
_ZOOM = """async ([plot, direction]) => {
  const started = performance.now();
  const before = plot.dataset.span;
  plot.parentElement.querySelector(`[data-zoom="${direction}"]`).click();
  while (plot.dataset.span === before) await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - started;
}"""


@dataclass
class Seen:
    """What was seen of a page: KB without and with charts, and times in ms."""

    before_kb: list[float] = field(default_factory=list)
    with_kb: list[float] = field(default_factory=list)
    paint_ms: list[float] = field(default_factory=list)
    click_ms: list[float] = field(default_factory=list)
    zoom_ms: list[float] = field(default_factory=list)


def filled(store: Store, runs: int, samples: int) -> str:
    """Fill an empty database; returns the identifier of the run with the long trace."""
    fill(store, runs // _COPIES, 0)
    multiply(store.engine, _COPIES)
    with store.write() as session:
        run_id = lengthen(session, samples)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return run_id


def addresses(there: Known, long_run: str) -> dict[str, str]:
    """Return one page of every kind."""
    dice = random.Random(1)  # noqa: S311 - nothing secret
    device, sweep, other = dice.choice(there.devices), dice.choice(there.sweeps), dice.choice(there.sweeps)
    large = dice.choice(there.large)
    return {
        "home": "/",
        "home, searched": "/?q=resnet50",
        "devices": "/devices",
        "device": f"/devices/{device}",
        "device, history": f"/devices/{device}/history",
        "device, sensors": f"/devices/{device}/sensors",
        "sweep of 24 runs": f"/sweeps/{sweep}",
        "sweep of 600 runs": f"/sweeps/{large}",
        "its runs": f"/sweeps/{large}/runs",
        "run, trace of 1 M samples": f"/runs/{long_run}",
        "audit of a run": f"/runs/{dice.choice(there.runs)}/audit",
        "compare, to choose": "/compare",
        "two sweeps compared": f"/compare?a={sweep}&b={other}",
        "trends": "/trends?model=resnet50",
        "models": "/models",
        "model, graph": "/models/resnet50",
        "layers": "/layers",
        "layer profile": f"/layers/{dice.choice(there.layers)}",
        "studies": "/studies",
        "study": "/studies/xavier-resnet50",
        "jobs": "/jobs",
        "admin": "/admin",
        "admin, log": "/admin/log",
        "new sweep": f"/sweeps/new?device={device}",
    }


def watched(browser: Browser, url: str) -> Iterator[tuple[Page, Seen]]:
    """Open an address with an empty cache; yields the page when its charts are drawn, and what was seen so far."""
    context, seen = browser.new_context(viewport={"width": 1440, "height": 900}), Seen()
    page = context.new_page()
    kind_of: dict[str, str] = {}
    size_of: dict[str, float] = {}
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    wire.on("Network.responseReceived", lambda said: kind_of.update({said["requestId"]: said["response"]["url"]}))
    wire.on("Network.loadingFinished", lambda said: size_of.update({said["requestId"]: said["encodedDataLength"]}))
    answer = page.goto(url)
    if answer is None or answer.status != 200:
        raise SystemExit(f"{url}: {answer and answer.status}")
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached", timeout=60_000)
    sizes = {kind_of.get(number, ""): size for number, size in size_of.items()}
    charts = sum(size for where, size in sizes.items() if "/static/plotly-" in where or "/charts/" in where)
    seen.with_kb.append(sum(sizes.values()) / 1000)
    seen.before_kb.append((sum(sizes.values()) - charts) / 1000)
    seen.paint_ms.append(page.evaluate(_PAINT))
    yield page, seen
    context.close()


def visited(browser: Browser, url: str, times: int) -> Seen:
    """Open a page so often; the last time click and zoom in it."""
    every = Seen()
    for visit in range(times):
        for page, seen in watched(browser, url):
            for name in ("before_kb", "with_kb", "paint_ms"):
                getattr(every, name).extend(getattr(seen, name))
            if visit == times - 1:
                every.click_ms, every.zoom_ms = clicks(page, times), zooms(page, times)
    return every


def clicks(page: Page, times: int) -> list[float]:
    """Return how long the page took to show what a click did."""
    found = page.locator("main th button.sort, main summary").all()[:4]
    return [element.evaluate(_CLICK) for _ in range(times) for element in found if element.is_visible()]


def zooms(page: Page, times: int) -> list[float]:
    """Return how long zooms took: in, in again, and out."""
    plot = page.locator(".plot[data-zoomable][data-drawn]").first
    if plot.count() == 0:
        return []
    handle = plot.element_handle()
    return [page.evaluate(_ZOOM, [handle, way]) for _ in range(times) for way in ("in", "in", "all")]


def told(name: str, seen: Seen) -> int:
    """Print a page as a row in Markdown; returns how many goals it missed."""
    goals = ((seen.paint_ms, PAINT_MS), (seen.click_ms, CLICK_MS), (seen.zoom_ms, ZOOM_MS))
    times = [f"{np.median(ms):.0f} / {np.percentile(ms, 95):.0f}" if ms else "" for ms, _ in goals]
    print(f"| {name} | {max(seen.before_kb):.0f} | {max(seen.with_kb):.0f} | {' | '.join(times)} |", flush=True)
    heavy = (max(seen.before_kb) > BEFORE_KB) + (max(seen.with_kb) > WITH_KB)
    return heavy + sum(bool(ms) and float(np.percentile(ms, 95)) > most for ms, most in goals)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000_000, help="runs to load (default: 1000000)")
    parser.add_argument("--samples", type=int, default=1_000_000, help="samples of the long trace (default: 1000000)")
    parser.add_argument("--times", type=int, default=15, help="visits, clicks and zooms of each page (default: 15)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="open only pages whose name matches")
    parser.add_argument(
        "--keep", metavar="DATABASE", help="a PostgreSQL of your own, which is filled where it is empty"
    )
    args = parser.parse_args(arguments)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        parser.error("Chromium is not installed; on Debian: apt install chromium")
    with database(sqlite=False, keep=args.keep) as address:
        store, start_s = open_store(address), time.monotonic()
        with store.session() as session:
            long_run = session.scalar(
                text("SELECT run_id::text FROM trace_chunk GROUP BY run_id ORDER BY sum(sample_count) DESC LIMIT 1")
            )
        if long_run is None:
            long_run = filled(store, args.runs, args.samples)
            print(f"filled in {time.monotonic() - start_s:.0f} s", file=sys.stderr)
        with store.session() as session:
            there = known(session)
        with served(store) as where, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=list(_CHROMIUM))
            print("| page | KB | KB with charts | first paint ms | click ms | zoom ms |")
            print("|---|--:|--:|--:|--:|--:|")
            missed = 0
            for name, path in addresses(there, long_run).items():
                if re.search(args.only, name) is None:
                    continue
                missed += told(name, visited(browser, f"http://{where}{path}", args.times))
            browser.close()
        print("\nTimes: median / 95th percentile.", f"{missed} goals missed." if missed else "Every goal is met.")
        store.close()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
