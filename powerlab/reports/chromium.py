"""PDF and PNG, made by a Chromium where there is one: what draws the page on screen draws it on paper."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.reports.figures.palette import LIGHT
from powerlab.reports.figures.svg import FONT

_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""The first has no windows: it starts sooner and does the same here."""
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"')
_TIMEOUT_S = 120.0
_PNG_SCALE = 2
"""Device pixels a px: sharp in print and on dense screens."""
REMEDY = "install Chromium (Debian and Ubuntu: `apt install chromium`) and try again"
_ARGUMENTS = (
    "--headless",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def find_chromium() -> str | None:
    """Return the program; None where there is none."""
    return next((found for name in _PROGRAMS if (found := shutil.which(name)) is not None), None)


def pdf_of(html: str) -> bytes:
    """Return a page as PDF, in its style for print; raises PowerlabError where there is no Chromium or it fails."""
    return _made("page.html", html, "made.pdf", ("--no-pdf-header-footer", "--print-to-pdf={}"))


def png_of(svg: str) -> bytes:
    """Return one of our own pictures as PNG, on a light page; raises PowerlabError as :func:`pdf_of` does."""
    page = (
        f"<!doctype html><style>html{{background:{LIGHT.surface}}}body{{margin:0;font-family:{FONT}}}"
        f"svg{{display:block}}</style>{svg}"
    )
    width, height = _SIZE.findall(svg)[0]
    size = f"--window-size={math.ceil(float(width))},{math.ceil(float(height))}"
    scale = f"--force-device-scale-factor={_PNG_SCALE}"
    return _made("page.html", page, "made.png", (size, scale, "--screenshot={}"))


def _made(source: str, content: str, target: str, arguments: Sequence[str]) -> bytes:
    program = find_chromium()
    if program is None:
        raise PowerlabError(f"PDF and PNG are made by Chromium, which is not installed; {REMEDY}.")
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium refuses to run as root otherwise
    with tempfile.TemporaryDirectory(prefix="powerlab-report-") as folder:
        page, made = Path(folder, source), Path(folder, target)
        page.write_text(content, encoding="utf-8")
        command = [program, *_ARGUMENTS, *sandbox, f"--user-data-dir={folder}/profile"]
        command += [argument.format(made) for argument in arguments]
        try:
            done = subprocess.run([*command, page.as_uri()], capture_output=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PowerlabError(f"{program} made no {made.suffix} ({error}); {REMEDY}.") from error
        if done.returncode != 0 or not made.is_file():
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
            raise PowerlabError(f"{program} made no {made.suffix} ({last[:200]}); {REMEDY}.")
        return made.read_bytes()
