"""``powerlab top``: power, clocks, temperatures and load of this machine as they change, on one screen."""

from __future__ import annotations

import argparse
import re
import sys

from powerlab.cli.arguments.host import add_host_arguments, open_host

SHORTEST_S, LONGEST_S = 0.1, 60.0

DESCRIPTION = """\
Watch power, clocks, temperatures and load of this machine on one screen. Nothing is changed, and nothing is stored.
"""

EPILOG = """\
keys:
  q      quit
  p      pause, go on
  + -    read more often, less often
  s      sort rails by watts, by name
  h      help

examples:
  powerlab top                                     this machine
  powerlab top --interval 0.5s                     twice a second
  powerlab top --board jetson-orin-nano            a simulated board
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
        "--interval",
        metavar="TIME",
        type=_interval_s,
        default=1.0,
        help="time between two readings, as in 1s or 500ms (default: 1s)",
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
    from powerlab.cli.commands.top.once import print_once
    from powerlab.readings.reader import Reader

    with open_host(args) as host, Reader(host) as reader:
        if args.once or args.json or not (sys.stdout.isatty() and sys.stdin.isatty()):
            print_once(reader, args.interval, as_json=args.json)
        else:
            from powerlab.cli.commands.top.screen import Screen, View

            Screen(reader, View(interval_s=args.interval, shortest_s=SHORTEST_S, longest_s=LONGEST_S)).show()
    return 0
