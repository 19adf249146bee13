"""The terminal: keys as they are pressed, and no more lines than it has."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.segment import SegmentLines
from rich.text import Text

_SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_NAMES = {"A": "up", "B": "down", "D": "left"}
_SINGLE = {"\r": "enter", "\n": "enter", "\x1b": "left", "\x7f": "left", "k": "up", "j": "down"}
"""Escape and Backspace lead back, as the left arrow does; k and j are vi's arrows."""


def fitted(console: Console, whole: RenderableType) -> RenderableType:
    """Return the lines there is room for, and how many are left out, where a screen is not tall enough."""
    lines = console.render_lines(whole, pad=False)
    if len(lines) <= console.height:
        return whole
    kept = lines[: console.height - 1]
    note = Text(f"… and {len(lines) - len(kept)} more lines; a taller terminal shows them.", style="yellow")
    return Group(SegmentLines(kept, new_lines=True), note)


@contextmanager
def keys_at_once() -> Iterator[None]:
    """Let keys arrive without Enter and without being shown."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def pressed(wait_s: float) -> list[str]:
    """Return the keys pressed by the end of the wait; the end of input counts as ``q``."""
    terminal = sys.stdin.fileno()
    if not select.select([terminal], [], [], wait_s)[0]:
        return []
    text = os.read(terminal, 64).decode("ascii", "ignore")
    return keys(text) if text else ["q"]


def keys(text: str) -> list[str]:
    """Return the keys that a terminal sent: ``up``, ``down``, ``left``, ``enter``, or a character."""
    return [
        _NAMES.get(found[-1], "") if len(found) > 1 else _SINGLE.get(found, found) for found in _SEQUENCE.findall(text)
    ]
