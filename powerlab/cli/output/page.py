"""Report pages of sections and tables, as ``powerlab doctor`` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from powerlab.cli.output.console import print_neatly, table_console

_STYLES = {"available": "green", "absent": "dim", "denied": "yellow", "broken": "red"}
_MARKS = {"available": "✓", "absent": "–", "denied": "!", "broken": "✗"}
_ORDER = ("available", "denied", "broken", "absent")
_WIDTH = 100


class Page:
    """A report printed from top to bottom, at most 100 columns wide, without trailing blanks."""

    def __init__(self, console: Console | None = None) -> None:
        """Write to a console; standard output by default."""
        self._console = console or table_console()
        self._console.width = min(self._console.width, _WIDTH)

    def heading(self, title: str) -> None:
        """Begin a section."""
        self.show(Text(), Text(title, style="bold"))

    def say(self, sentence: str) -> None:
        """Write a sentence, indented and wrapped."""
        self.show(Padding(Text(sentence), (0, 0, 0, 2)))

    def show(self, *parts: RenderableType) -> None:
        """Write parts one below the other."""
        print_neatly(self._console, *parts)

    def command(self, words: Text) -> None:
        """Write a line without wrapping, so that a command in it can be copied."""
        self._console.print(words, soft_wrap=True)


def pairs(lines: Mapping[str, str]) -> Table:
    """Return a two-column table of names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for name, value in lines.items():
        table.add_row(Text(f"  {name}", style="dim"), Text(value))
    return table


def by_state(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return entries with available ones first and absent ones last."""
    return sorted(entries, key=lambda entry: _ORDER.index(entry["availability"]))


def states(entries: Iterable[Mapping[str, Any]], name: str) -> Table:
    """Return a table of probe results; ``name`` is the key of an entry's name."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column()
    for entry in by_state(entries):
        state = entry["availability"]
        shade = "dim" if state == "absent" else ""
        status = Text(f"{_MARKS[state]} {state}", style=_STYLES[state])
        table.add_row(Text(f"  {entry[name]}", style=shade), status, Text(entry["detail"], style=shade))
    return table


def figures(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of figures; only the first column wraps."""
    table = Table(box=None, pad_edge=True, header_style="dim")
    for index, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=index > 0)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def scaled(value: float, unit: str) -> str:
    """Return a small quantity with an SI prefix: 0.000061 J is 61 µJ."""
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "µ")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value / 1e-6:.2g} µ{unit}"


def counted(count: int, what: str) -> str:
    """Return ``1 rail`` or ``6 rails``."""
    return f"{count} {what}{'s' * (count != 1)}"


def some(names: Sequence[str], most: int, separator: str, rest: str) -> str:
    """Return names in one line; of more than ``most``, the first ones and how many more there are."""
    shown = separator.join(names[:most])
    return f"{shown}{rest.format(len(names) - most)}" if len(names) > most else shown
