"""``powerlab audit``: work out a stored run's figures again."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Work out everything a stored run says of itself again, from the samples and times that are stored with it: percentiles,
throughput, power, energy, idle power, intervals, uncertainty budget, findings and verdict. Then say, rule by rule, what
MLPerf Power would say of the run, with its figure and what would mend it.
"""

_EPILOG = """\
exit status: 0 the record gives everything that the run says, whatever MLPerf would say; 1 something differs, or the
record is damaged; 2 there is no such run, or its record is not enough to audit it

examples:
  powerlab runs list
  powerlab audit 3f2a91c0
  powerlab audit 3f2a91c0 --json
  powerlab audit 3f2a91c0 --server http://server:8765
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    from powerlab.cli.commands.runs import add_source_arguments

    parser = subparsers.add_parser(
        "audit",
        help="work out a stored run's figures again, and hold MLPerf Power's rules against it",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument("run_id", metavar="RUN", help="its id, or the beginning of it")
    add_source_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands import audit_body

    return audit_body.audit(args)
