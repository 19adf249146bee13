"""``powerlab doctor``: what this machine can measure and set, and what to do about what it cannot."""

from __future__ import annotations

import argparse
import json

from powerlab.cli.arguments.host import add_host_arguments, open_host
from powerlab.command_line import time_up_to

_WATCH_S = 2.0
_LONGEST_WATCH_S = 3600.0

DESCRIPTION = """\
Show what this machine can measure and set, and how to fix what does not work. Nothing is changed. With --watch every
rail is read as fast as possible for a while, to see how often its values really change and what a read costs.
"""

EPILOG = """\
examples:
  powerlab doctor                                  this machine
  powerlab doctor --watch                          watch its sensors for two seconds
  powerlab doctor --board jetson-agx-xavier        a simulated board
  powerlab doctor --json | jq .total               for machines

exit status:
  0  the report was printed, whatever it says
  2  invalid request, for example an unknown board
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host_arguments(parser)
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        type=time_up_to(_LONGEST_WATCH_S, "s"),
        const=_WATCH_S,
        help=f"watch every rail for SECONDS (default: {_WATCH_S:g})",
    )
    parser.add_argument("--all", action="store_true", help="show why each thing is missing, and every rail and mode")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.doctor.document import document
    from powerlab.cli.commands.doctor.report import print_report

    with open_host(args) as host:
        found = document(host, args.watch)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print_report(found, everything=args.all)
    return 0
