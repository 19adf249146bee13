"""Write docs/cli.md from the command line's own help, so that the page cannot tell anything else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from powerlab import cli

_PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
_HEAD = """\
# The command line

This page is what `powerlab --help` and `powerlab COMMAND --help` print; `make docs` writes it anew.

"""


def _subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _sections(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {parser.prog}\n\n```text\n{parser.format_help().rstrip()}\n```\n"
    for child in _subparsers(parser).values():
        yield from _sections(child, min(level + 1, 3))


def page() -> str:
    """Return the text of the page; the same on every terminal."""
    kept = {name: os.environ.get(name) for name in ("COLUMNS", "NO_COLOR")}
    os.environ.update(COLUMNS="100", NO_COLOR="1")
    try:
        return _HEAD + "\n".join(_sections(cli.parser(), 2))
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def main() -> int:
    """Write the page."""
    _PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
