"""The console, and tables that fit it."""

from __future__ import annotations

import re
import textwrap

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

_FILE_WIDTH = 140
_ID_LENGTH = 36
_TRAILING_BLANKS = re.compile(r" +(?=(\x1b\[[0-9;]*m)*$)")


class OutputConsole(Console):
    """A console on standard output whose reader may close the pipe, as head(1) does, and then ends the command."""

    def on_broken_pipe(self) -> None:
        """Leave it to main(), which has an exit status of its own for that; rich would exit with 1, a failure.

        Raises:
            BrokenPipeError: always.
        """
        raise BrokenPipeError


def table_console() -> Console:
    """Return a console on standard output; if that is not a terminal, it is wide enough for every table.

    Names from users and files are printed verbatim, including brackets and colons.
    """
    console = OutputConsole(markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def print_neatly(console: Console, *parts: RenderableType) -> None:
    """Print parts one below the other, without trailing blanks."""
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    console.file.write("".join(f"{_TRAILING_BLANKS.sub('', line)}\n" for line in captured.get().splitlines()))


def plain_table(*headings: str) -> Table:
    """Return a table without rules; on a narrow terminal cells wrap, and no heading is cut.

    The column of runs, sets or sweeps keeps its width; of runs and sweeps it holds :func:`identified` cells.
    """
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        least = max(map(len, heading.split()))
        table.add_column(heading, min_width=least, overflow="fold", no_wrap=heading in {"run", "set", "sweep"})
    return table


def identified(identifier: str, words: str) -> Text:
    """Return a cell with an identifier on one line, so that it can be copied, and its description below."""
    return Text("\n".join((identifier, *textwrap.wrap(words, _ID_LENGTH))))
