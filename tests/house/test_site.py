"""The documentation builds as a site without a warning, and the site needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

MOST_COLUMNS = 120


@pytest.fixture(scope="session")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Strict: a page missing from the navigation or a link or anchor that leads nowhere fails it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built(root: Path, site: Path) -> None:
    pages = {path.relative_to(root / "docs").with_suffix("") for path in (root / "docs").rglob("*.md")}
    assert {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")} >= pages


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    loading = re.compile(
        r'<(?:script|img|source|iframe)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*\bhref="(?:https?:)?//'
    )
    for page in site.rglob("*.html"):
        text = re.sub(r'<link rel="canonical"[^>]*>', "", page.read_text(encoding="utf-8"))
        assert loading.findall(text) == [], page.name
        assert 'class="mermaid"' not in text, f"{page.name}: the theme would fetch mermaid from elsewhere"


def test_make_site_builds_the_same(root: Path) -> None:
    recipe = (root / "Makefile").read_text(encoding="utf-8").partition("\nsite:")[2].partition("\n\n")[0]
    assert "mkdocs build" in recipe
    assert "--strict" in recipe
    settings = yaml.safe_load((root / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["site_dir"] == "build/site"
    assert settings["theme"]["font"] is False


def test_lines_of_pages_are_short(root: Path, tracked: list[Path]) -> None:
    """Tables, images and lines that end in a long address cannot be broken."""
    found = []
    for page in (path for path in tracked if path.suffix == ".md"):
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            breakable = not (line.startswith(("|", "![")) or re.match(r"\s*(\S+ )?\S*https?://\S+$", line))
            if breakable and len(line) > MOST_COLUMNS:
                found.append(f"{page.relative_to(root)}:{number}: {len(line)} columns")
    assert found == []
