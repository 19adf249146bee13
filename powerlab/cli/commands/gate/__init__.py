"""``powerlab gate``: judge sweeps against a baseline, for continuous integration."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.stored_runs import add_source_arguments

DESCRIPTION = """\
Judge the sweeps of a change against a baseline, point by point and metric by metric. The scatter between sweeps
decides, so that both sides take several, measured in turns or on different days: sweeps of one side in one go count as
one. Loss: something was lost (shown at 1 %, over all points and metrics together), and by best estimate more than
--max-loss. Pass: a loss as large as --max-loss is ruled out at 5 % at every point. Otherwise there is not enough data,
and the output says how many sweeps would be enough.
"""

EPILOG = """\
exit status:
  0  pass
  1  loss
  2  invalid request; a message on standard error says why and what to do
  3  not enough data for either; the output says what is missing

A SWEEP is an id or first digits of one, a results file of `powerlab profile`, or a folder of such files. A baseline is
the same, or a name given by `powerlab baseline`. Both sides are of one device. Estimated power is not judged.

examples:
  powerlab gate SWEEP SWEEP SWEEP --baseline main --max-loss 2%
  powerlab gate change/ --baseline base/ --markdown gate.md
  powerlab gate --baseline main --plan             how many sweeps a gate takes
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("sweeps", nargs="*", metavar="SWEEP", help="sweeps of the change")
    parser.add_argument(
        "--baseline",
        metavar="NAME|SWEEP|FILE",
        action="append",
        default=[],
        help="what to judge against; may be repeated (default: main)",
    )
    parser.add_argument(
        "--max-loss", metavar="PERCENT", default="2%", help="largest loss that may be, such as 2%% (default: 2%%)"
    )
    parser.add_argument(
        "--find",
        metavar="PERCENT",
        help="loss that the number of sweeps asked for finds with 95 %% probability (default: 1.5 times --max-loss)",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        action="append",
        default=[],
        help="metric to judge, such as p99, img/s, J/img; may be repeated (default: all that have a best point)",
    )
    parser.add_argument("--plan", action="store_true", help="only say how many sweeps of each side a gate takes")
    parser.add_argument("--markdown", metavar="FILE", help="write the report for a pull request; - for standard output")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.gate.judging import judged, planned

    return planned(args) if args.plan else judged(args)
