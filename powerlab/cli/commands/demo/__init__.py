"""``powerlab demo``: this machine's own answer for ResNet-50, the real way."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """\
Start a server, enrol this machine's agent with it, sweep ResNet-50 over threads, batch sizes and power modes through
the API, and print the table and the dashboard's address. On a terminal it keeps serving until Ctrl-C. Everything is
stored in one folder.
"""

EPILOG = """\
exit status: 0 the sweep finished; 1 it failed; 2 invalid request; 130 interrupted

examples:
  powerlab demo
  powerlab demo --no-serve --state /tmp/demo
  powerlab demo --board jetson-agx-xavier
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--no-serve", action="store_true", help="exit after the table, on a terminal too")
    parser.add_argument("--port", type=int, help="the server's port (default: 8765 if it is free, else a free one)")
    parser.add_argument(
        "--state",
        type=Path,
        default=Path(".demo"),
        metavar="DIR",
        help="folder for everything it stores (default: .demo)",
    )
    parser.add_argument("--database", metavar="PATH_OR_URL", help="default: powerlab.db in --state")
    parser.add_argument("--board", metavar="NAME", help="use a simulated board instead of this machine")
    parser.add_argument("--model", default="resnet50", help="what is run (default: resnet50)")
    parser.add_argument(
        "--seconds", type=float, default=90.0, help="about how long the sweep should take (default: 90)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.demo.demonstration import demonstrate

    return demonstrate(args)
