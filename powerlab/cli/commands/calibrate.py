"""``powerlab calibrate``: find out how late the power sensors are, and keep it for sweeps."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.host import add_host_arguments

_DESCRIPTION = """\
Switch a load on and off at odd moments while every rail of the board's power is recorded, and find out how late each
rail's readings are, with its uncertainty. Sweeps of this board, under this kernel, correct their readings by it from
then on. Fix the clocks first where that is possible (powerlab modes): clocks that rise slowly look like a late sensor.
"""

_EPILOG = """\
exit status: 0 done; 1 no rail follows the load, and nothing is kept; 2 the request cannot be carried out

examples:
  powerlab calibrate
  powerlab calibrate --board nvidia-grace --cycles 12
  powerlab calibrate --forget
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "calibrate",
        help="find out how late the power sensors are",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add_host_arguments(parser)
    parser.add_argument("--cycles", metavar="N", type=int, default=8, help="how often the load goes on (default: 8)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the odd moments (default: 0)")
    parser.add_argument("--forget", action="store_true", help="remove what is kept, and measure nothing")
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.calibrate_body import calibrate, forget

    return forget(args) if args.forget else calibrate(args)
