"""The part of Plotly that is committed: what it may be, and that its recipe gives it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from powerlab_dashboards import assets
from requires import require_program

RECIPE = Path(__file__).parents[2] / "dashboards" / "plotly"
TRACES = {"scatter", "bar", "heatmap"}


def test_it_is_the_version_of_its_recipe() -> None:
    versions = json.loads((RECIPE / "package.json").read_text())["dependencies"]
    banner = assets.PLOTLY.read_text()[:100]
    assert f"plotly.js {versions['plotly.js']}," in banner


def test_every_package_of_the_recipe_has_an_exact_version() -> None:
    package = json.loads((RECIPE / "package.json").read_text())
    wanted = package["dependencies"] | package["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    locked = json.loads((RECIPE / "package-lock.json").read_text())["packages"]
    assert all("integrity" in one for path, one in locked.items() if path)


def test_it_evaluates_no_text_as_code() -> None:
    script = assets.PLOTLY.read_text()
    assert "new Function" not in script
    assert not re.search(r"\beval\(", script)


def test_its_licences_travel_with_it_and_none_asks_for_more_than_a_notice() -> None:
    notices = (assets.PLOTLY.parent / "plotly-licences.txt").read_text()
    packages = re.findall(r"^(\S+) \d+\.\d+\.\d+ \((.+)\)$", notices, flags=re.MULTILINE)
    assert ("plotly.js", "MIT") in packages
    assert {licence for _, licence in packages} <= {"MIT", "BSD-3-Clause", "ISC", "Zlib"}


def test_the_charts_use_no_other_traces() -> None:
    sources = (RECIPE.parent / "powerlab_dashboards" / "charts").rglob("*.py")
    used = {kind for path in sources for kind in re.findall(r'"type": "(\w+)"', path.read_text())}
    assert used >= TRACES
    assert used - TRACES <= {"rect", "line", "path", "data", "log", "linear", "date", "category", "constant"}


@pytest.mark.campaign
def test_its_recipe_gives_what_is_committed(tmp_path: Path) -> None:
    npm, node = require_program("npm", "npm"), require_program("node", "nodejs")
    for name in ("package.json", "package-lock.json", "bundle.js", "build.mjs"):
        shutil.copy(RECIPE / name, tmp_path)
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    subprocess.run([npm, "ci", *quiet], cwd=tmp_path, check=True)
    subprocess.run([node, "build.mjs", str(tmp_path)], cwd=tmp_path, check=True)
    for name in ("plotly.min.js", "plotly-licences.txt"):
        assert (tmp_path / name).read_bytes() == (assets.PLOTLY.parent / name).read_bytes(), "run: make plotly"
