"""``powerlab top``: power, clocks, temperatures and load as they change, of this machine or of a server's devices."""

from __future__ import annotations

import argparse
import os
import re
import sys

from powerlab.cli.arguments.host import add_host_arguments, open_host
from powerlab.cli.arguments.server import connect
from powerlab.domain.errors import PowerlabError

SHORTEST_S, LONGEST_S = 0.1, 60.0
_HOST_S, _FLEET_S = 1.0, 2.0
_WIDEST = 120

DESCRIPTION = """\
Watch power, clocks, temperatures and load of this machine on one screen; with --from, or POWERLAB_SERVER, what
all devices of a server do and read. Nothing is changed, and nothing is stored.
"""

EPILOG = """\
keys:
  q      quit
  p      pause, go on
  + -    read more often, less often
  s      sort rails by watts, by name; devices by name, watts, state
  h      help
devices of a server:
  arrows, j k   choose one
  Enter         show its rails, clocks, temperatures and load
  left, Esc     back to all devices

examples:
  powerlab top                                     this machine
  powerlab top --interval 0.5s                     twice a second
  powerlab top --board jetson-orin-nano            a simulated board
  powerlab top --from http://server:8765           all devices of a server
  powerlab top --sysroot /                         this machine, also where POWERLAB_SERVER is set
  powerlab top --once                              one reading as a table
  powerlab top --json | jq .total.power_w          one reading for machines

exit status:
  0  the screen was left with q or Ctrl-C, or one reading was printed
  2  invalid request, for example an unknown board
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host_arguments(parser)
    parser.add_argument(
        "--from",
        "--server",
        dest="server",
        metavar="URL",
        help="show the devices of this server (default: POWERLAB_SERVER if set, else this machine)",
    )
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=_interval_s,
        help="time between two readings, as in 500ms (default: 1s; 2s where a server is asked)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--once", action="store_true", help="print one reading as a table (the default if output is no terminal)"
    )
    form.add_argument("--json", action="store_true", help="print one reading as JSON")


def _interval_s(text: str) -> float:
    matched = re.fullmatch(r"([0-9]{0,6}\.?[0-9]{1,6})(ms|s)?", text)
    seconds = float(matched[1]) * (1e-3 if matched[2] == "ms" else 1.0) if matched else 0.0
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 100ms to {LONGEST_S:g}s")
    return seconds


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    on_screen = not (args.once or args.json) and sys.stdout.isatty() and sys.stdin.isatty()
    server = _server(args)
    if server is not None:
        _show_fleet(args, server, on_screen=on_screen)
    else:
        _show_host(args, on_screen=on_screen)
    return 0


def _server(args: argparse.Namespace) -> str | None:
    """Return the server to ask; None for a device that is read here."""
    if args.board is None and args.sysroot is None:
        return args.server or os.environ.get("POWERLAB_SERVER") or None
    if args.server:
        raise PowerlabError("--from shows a server's devices; leave out --board and --sysroot, which name one here.")
    return None


def _show_host(args: argparse.Namespace, *, on_screen: bool) -> None:
    from powerlab.cli.commands.top.once import print_once
    from powerlab.readings.reader import Reader

    interval_s = args.interval or _HOST_S
    with open_host(args) as host, Reader(host) as reader:
        if on_screen:
            from powerlab.cli.commands.top.screen import Screen, View

            Screen(reader, View(interval_s=interval_s, shortest_s=SHORTEST_S, longest_s=LONGEST_S)).show()
        else:
            print_once(reader, interval_s, as_json=args.json)


def _show_fleet(args: argparse.Namespace, server: str, *, on_screen: bool) -> None:
    from powerlab.cli.commands.top.fleet.feed import Feed, ask_once
    from powerlab.cli.commands.top.fleet.lines import lines
    from powerlab.cli.commands.top.fleet.screen import FleetView, show
    from powerlab.cli.commands.top.fleet.table import fleet_page
    from powerlab.cli.output.console import print_neatly, table_console
    from powerlab.protocol.wire import encode

    client, interval_s = connect(server), args.interval or _FLEET_S
    if on_screen:
        with Feed(client, interval_s) as feed:
            show(feed, FleetView(interval_s=interval_s, shortest_s=SHORTEST_S, longest_s=LONGEST_S))
    else:
        seen = ask_once(client)
        if args.json:
            print(encode(seen.fleet).decode())
        else:
            console = table_console()
            console.width = min(console.width, _WIDEST)
            print_neatly(console, fleet_page(seen, lines(seen), console.width))
