"""``powerlab runs``: look at stored runs."""

from __future__ import annotations

import argparse

from powerlab.cli.arguments.carbon_and_cost import add_factor_arguments

_EPILOG = """\
exit status: 0 done; 2 there is no such run, or the database or server cannot be used

examples:
  powerlab runs list --sweep SWEEP
  powerlab runs show RUN --json
  powerlab runs show RUN --carbon 380 --price 0.30EUR
  powerlab runs list --server http://server:8765
"""


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--database`` and ``--server``: where runs are read from."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--database", metavar="PATH_OR_URL", help="a database (default: the local one)")
    where.add_argument("--server", metavar="URL", help="a server instead of a database")


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what chooses runs."""
    parser.add_argument("--sweep", metavar="SWEEP", help="only this sweep's runs")
    parser.add_argument("--model", help="only this model's runs")
    parser.add_argument("--verdict", choices=("valid", "flagged", "void", "failed"), help="only runs judged so")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "runs",
        help="list and show stored runs",
        description="List stored runs, or show one with its figures, intervals, provenance and findings.",
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser(
        "list",
        help="in the order in which they arrived",
        description="List stored runs in the order in which they arrived.",
    )
    add_filter_arguments(listed)
    show = actions.add_parser(
        "show",
        help="one run",
        description="Show one run with its figures, provenance and findings, and what its intervals are made of.",
    )
    show.add_argument("run_id", metavar="RUN", help="its id, or the beginning of it")
    add_factor_arguments(show)
    for action in (listed, show):
        add_source_arguments(action)
        action.add_argument("--json", action="store_true", help="print JSON for machines")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands import runs_body

    return runs_body.show(args) if args.action == "show" else runs_body.list_all(args)
