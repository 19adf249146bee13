"""Long campaigns take turns in continuous integration: each change runs one part of them, the next change the next.

A campaign is long if its marker says how many minutes it takes. Files are dealt to the parts, so that what a file has
prepared is prepared once.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

PARTS = 12
BY_CHANGE = "change"
"""The word for the part whose turn it is with the commit that is checked out."""


class Turns:
    """Leaves all long campaigns but one part to other changes, and says which; a plugin of pytest."""

    def __init__(self, part: int) -> None:
        self.part = part
        self.left: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep one part of the long campaigns, and every other test."""
        part_of = dealt(long_campaigns(items))
        left = [item for item in items if is_long(item) and part_of[item.path] != self.part]
        self.left.update(str(item.path.relative_to(config.rootpath)) for item in left)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that reports, which collects nothing, what this worker has left."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left"] = sorted(self.left)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take in what a worker has left."""
        self.left.update(getattr(node, "workeroutput", {}).get("left", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which part ran, and what is left to the others."""
        terminalreporter.write_line(
            f"Of the long campaigns, part {self.part} of {PARTS} ran. Left to other changes, and to make test-all: "
            f"{', '.join(sorted(self.left)) or 'none'}."
        )


def is_long(item: pytest.Item) -> bool:
    """Tell whether a test is a campaign that says its minutes, and is not left to a release anyway."""
    markers = item.iter_markers("campaign")
    return item.get_closest_marker("release") is None and any("minutes" in marker.kwargs for marker in markers)


def long_campaigns(items: list[pytest.Item]) -> dict[Path, float]:
    """Return the minutes of each file's longest campaign."""
    minutes: dict[Path, float] = {}
    for item in filter(is_long, items):
        for marker in item.iter_markers("campaign"):
            minutes[item.path] = max(minutes.get(item.path, 0), marker.kwargs.get("minutes", 0))
    return minutes


def dealt(minutes: Mapping[Path, float], parts: int = PARTS) -> dict[Path, int]:
    """Return each file's part, 1 to ``parts``: the longest file first, each to the part that has the fewest minutes."""
    load = dict.fromkeys(range(1, parts + 1), 0.0)
    part_of = {}
    for path in sorted(minutes, key=lambda path: (-minutes[path], path)):
        part_of[path] = min(load, key=lambda part: load[part])
        load[part_of[path]] += minutes[path]
    return part_of


def chosen_part(option: str, root: Path) -> int:
    """Return the part that an option asks for: a number, or the word for the turn of the commit in ``root``.

    Raises:
        ValueError: it is neither.
    """
    if option == BY_CHANGE:
        return part_of_change(root)
    if option not in map(str, range(1, PARTS + 1)):
        raise ValueError(f'"{option}" is no part of the long campaigns: 1 to {PARTS}, or {BY_CHANGE}')
    return int(option)


def part_of_change(root: Path) -> int:
    """Return the part whose turn it is with the commit that is checked out in ``root``.

    Commits are counted, so consecutive ones run consecutive parts. A shallow clone has none to count; there the hash
    of the commit draws the part. The day draws it where there is no commit, as in a copy without its history.
    """

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout.strip()

    try:
        if git("rev-parse", "--is-shallow-repository") == "true":
            number = int(git("rev-parse", "HEAD"), 16)
        else:
            number = int(git("rev-list", "--count", "HEAD"))
    except (OSError, subprocess.CalledProcessError):
        number = datetime.now(UTC).toordinal()
    return number % PARTS + 1
