"""The screen of a fleet, and the keys that steer it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from powerlab.cli.commands.top.fleet.device import device_page
from powerlab.cli.commands.top.fleet.feed import Feed, Seen
from powerlab.cli.commands.top.fleet.lines import Line, Order, lines
from powerlab.cli.commands.top.fleet.table import fleet_page
from powerlab.cli.commands.top.screen import View
from powerlab.cli.commands.top.terminal import fitted, keys_at_once, pressed

_REDRAW_S = 0.5
"""Ages count on between two answers."""
_AROUND = 12
"""Lines of the screen that are no devices."""
_HELP = """\
q                quit
up down, k j     choose a device
Enter            show its rails, clocks and temperatures
left, Esc        back to all devices
p                pause, go on
+ -              ask more often, less often
s                sort devices by name, W, state; one device's rails by W, name
h                close this help

Figures are at most 30 s old, else they are left out.
While power is measured for a figure an agent reads and sends nothing.
"thr." counts the runs of the last 24 h slowed down by heat, power or current."""


@dataclass(slots=True, kw_only=True)
class FleetView(View):
    """What the keys have chosen; ``chosen`` is a device's id, and ``opened`` whether it fills the screen."""

    order: Order = Order.NAME
    chosen: str = ""
    opened: bool = False

    def keep_to(self, found: Sequence[Line]) -> None:
        """Choose the first device where none is chosen, or the chosen one is gone."""
        if self.chosen not in {line.member.id for line in found}:
            self.chosen, self.opened = (found[0].member.id if found else ""), False

    def steer(self, key: str, found: Sequence[Line]) -> None:
        """Do what a key asks for, where these devices are shown in this order."""
        match key:
            case "up" | "down" if found:
                self.keep_to(found)
                ids = [line.member.id for line in found]
                place = ids.index(self.chosen) + (1 if key == "down" else -1)
                self.chosen = ids[min(max(place, 0), len(ids) - 1)]
            case "enter":
                self.opened = bool(self.chosen)
            case "left":
                self.opened = self.help = False
            case "s" if not self.opened:
                orders = list(Order)
                self.order = orders[(orders.index(self.order) + 1) % len(orders)]
            case _:
                self.press(key)


def fleet_screen(seen: Seen, found: Sequence[Line], view: FleetView, width: int, height: int) -> RenderableType:
    """Return the whole screen: the fleet, one device or the help, and a line about the keys."""
    state = "paused" if view.paused else f"every {view.interval_s:g} s"
    does = "Esc back" if view.opened else "jk choose  Enter open"
    keys = Text(f"q quit  {does}  s sort  p pause  +- interval  h help  {state}", style="reverse")
    keys.truncate(width, overflow="ellipsis")
    opened = next((line for line in found if view.opened and line.member.id == view.chosen), None)
    if view.help:
        body: RenderableType = Text(_HELP)
    elif opened is not None:
        body = device_page(seen, opened, width, by_name=view.by_name)
    else:
        body = fleet_page(seen, found, width, chosen=view.chosen, rows=height - _AROUND)
    return Group(keys, Text(), body)


def show(feed: Feed, view: FleetView) -> None:
    """Draw until the key ``q`` or Ctrl-C; whatever happens, the terminal is as before afterwards."""
    console = Console(markup=False, emoji=False)
    with suppress(KeyboardInterrupt), keys_at_once(), Live(console=console, screen=True, auto_refresh=False) as live:
        seen = feed.seen()
        while not view.quit:
            seen = seen if view.paused else feed.seen()
            found = lines(seen, view.order)
            view.keep_to(found)
            drawn = fleet_screen(seen, found, view, console.width, console.height)
            live.update(fitted(console, drawn), refresh=True)
            for key in pressed(_REDRAW_S):
                view.steer(key, found)
            feed.steer(view.interval_s, view.chosen if view.opened else "", paused=view.paused)
