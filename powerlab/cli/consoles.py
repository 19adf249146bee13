"""Where tables are printed."""

from __future__ import annotations

from rich.console import Console

_FILE_WIDTH = 140


def table_console() -> Console:
    """Return standard output; where it is no terminal, and so has no width of its own, wide enough for every table.

    Names that users and files give are printed as they are, brackets and colons too.
    """
    console = Console(markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console
