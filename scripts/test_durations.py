"""Print where the time of the tests goes, as a Markdown table by folder.

Usage: ``make test PYTEST_ARGS=--junitxml=build/tests.xml``, then
``python scripts/test_durations.py build/tests.xml ...``; each file gets two columns.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from xml.etree import ElementTree


def by_folder(path: str) -> tuple[dict[str, float], Counter[str]]:
    """Return seconds and number of tests by folder below tests/."""
    seconds: defaultdict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):  # noqa: S314
        _, dot, below = (case.get("classname") or "").partition(".")
        if not dot:
            continue  # a file that could not be read as tests
        folder = below.partition(".")[0]
        seconds[folder] += float(case.get("time") or 0)
        count[folder] += 1
    return seconds, count


def main(paths: Sequence[str]) -> None:
    """Print the table, the slowest folder of the first file first."""
    columns = [by_folder(path) for path in paths]
    print(f"| folder |{' tests | seconds |' * len(columns)}")
    print(f"|---|{'---:|---:|' * len(columns)}")
    folders = sorted(
        {name for seconds, _ in columns for name in seconds}, key=lambda name: -columns[0][0].get(name, 0.0)
    )
    for name in [*folders, "all"]:
        cells = (
            (f"{count.total():,}", sum(seconds.values()))
            if name == "all"
            else (f"{count[name]:,}", seconds.get(name, 0.0))
            for seconds, count in columns
        )
        print(f"| {name} |{''.join(f' {number} | {spent:.0f} |' for number, spent in cells)}")


if __name__ == "__main__":
    main(sys.argv[1:])
