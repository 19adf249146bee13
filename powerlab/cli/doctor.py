"""``powerlab doctor``: what this machine can measure and set, and what to do about what it cannot."""

from __future__ import annotations

import argparse
import json

from powerlab.cli.hosts import add_host_arguments, open_host

_DESCRIPTION = """\
Say what this machine can measure and set, and what to do about what it cannot.

Nothing is changed. Sources that could be read with more rights come with the command that grants them.
"""

_EPILOG = """\
examples:
  powerlab doctor                                  this machine
  powerlab doctor --board jetson-agx-xavier        a simulated board
  powerlab doctor --json | jq .total               for machines

exit status:
  0  the report was printed, whatever it says
  2  the request cannot be carried out, for example an unknown board
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="what this machine can measure and set",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add_host_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.doctor_report import document, print_report

    with open_host(args) as host:
        found = document(host)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        print_report(found)
    return 0
