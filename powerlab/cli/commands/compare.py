"""``powerlab compare``: which differences between points are real."""

from __future__ import annotations

import argparse

from powerlab.cli.commands.runs import add_source_arguments

_DESCRIPTION = """\
Compare points by the ratio of their figures. A difference is claimed only where the 95 % interval of the ratio excludes
1. What one sensor does to both points cancels in the ratio; the scatter between repeats does not. One sweep: the best
point against all others. Two sweeps: each point of the second against the same point of the first.
"""

_EPILOG = """\
exit status: 0 compared; 2 there is no such sweep, or nothing in it can be compared

A SWEEP is an identifier or its first digits (`powerlab sweep list`), or a file that `powerlab profile` wrote. Of
several comparisons of one metric, only those are claimed that hold together at 95 % (Holm, 1979). Figures of
different provenance are shown side by side, without a ratio.

examples:
  powerlab compare SWEEP                       the best point against the others
  powerlab compare SWEEP --by engine           each engine against the first, all else alike
  powerlab compare BEFORE AFTER --metric energy_per_image_j
  powerlab compare ONE OTHER --ignore mode     points of different power modes against each other
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "compare",
        help="say which differences between points are real",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("sweeps", nargs="+", metavar="SWEEP", help="one sweep or two")
    parser.add_argument(
        "--metric", metavar="NAME", action="append", default=[], help="what to compare (default: what has a best point)"
    )
    parser.add_argument("--by", metavar="DIMENSION", help="within one sweep, compare along this dimension alone")
    parser.add_argument(
        "--ignore", metavar="DIMENSION", action="append", default=[], help="between two sweeps, let points differ in it"
    )
    parser.add_argument("--json", action="store_true", help="print JSON for machines")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.compare_body import compare

    return compare(args)
