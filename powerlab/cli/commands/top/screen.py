"""The screen that redraws itself, and the keys that steer it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from powerlab.cli.commands.top.layout import layout
from powerlab.cli.commands.top.terminal import fitted, keys_at_once, pressed
from powerlab.readings.reader import Reader
from powerlab.readings.reading import Reading

_STEP = 2.0
_HELP = """\
q  quit
p  pause, go on
+  read more often
-  read less often
s  sort rails by watts, by name
h  close this help"""


@dataclass(slots=True, kw_only=True)
class View:
    """What the keys have chosen."""

    interval_s: float
    shortest_s: float
    longest_s: float
    by_name: bool = False
    paused: bool = False
    help: bool = False
    quit: bool = False

    def press(self, key: str) -> None:
        """Do what a key asks for; one without a meaning does nothing."""
        match key:
            case "q":
                self.quit = True
            case "p":
                self.paused = not self.paused
            case "s":
                self.by_name = not self.by_name
            case "h":
                self.help = not self.help
            case "+":
                self.interval_s = max(self.shortest_s, self.interval_s / _STEP)
            case "-":
                self.interval_s = min(self.longest_s, self.interval_s * _STEP)


def page(reading: Reading, view: View, width: int) -> RenderableType:
    """Return the whole screen: a reading or the help, and a line about the keys."""
    state = "paused" if view.paused else f"every {view.interval_s:g} s"
    cost = f"costs {reading.cost_s * 1e3:.1f} ms"
    keys = Text(f"q quit  p pause  +- interval  s sort  h help  {state}, {cost}", style="reverse")
    body = Text(_HELP) if view.help else layout(reading, width, by_name=view.by_name)
    keys.truncate(width, overflow="ellipsis")
    return Group(keys, Text(), body)


class Screen:
    """Shows a device until somebody quits; whatever happens, the terminal is as before afterwards."""

    def __init__(self, reader: Reader, view: View) -> None:
        self._reader = reader
        self._view = view
        self._console = Console(markup=False, emoji=False)

    def show(self) -> None:
        """Read and draw until the key ``q`` or Ctrl-C."""
        with suppress(KeyboardInterrupt), keys_at_once(), self._live() as live:
            self._until_quit(live)

    def _live(self) -> Live:
        return Live(console=self._console, screen=True, auto_refresh=False)

    def _until_quit(self, live: Live) -> None:
        view, reading = self._view, self._reader.read()
        due_s = time.monotonic() + view.interval_s
        while not view.quit:
            live.update(fitted(self._console, page(reading, view, self._console.width)), refresh=True)
            for key in pressed(max(0.0, due_s - time.monotonic())):
                view.press(key)
                due_s = min(due_s, time.monotonic() + view.interval_s)
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + view.interval_s
                if not view.paused:
                    reading = self._reader.read()
