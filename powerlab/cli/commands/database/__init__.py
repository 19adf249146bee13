"""``powerlab database``: remove old data from a server's database."""

from __future__ import annotations

import argparse
import importlib.util

from powerlab.cli.arguments.retention import add_keep_options
from powerlab.domain.errors import PowerlabError

DESCRIPTION = """\
Remove old traces, live events and audit log entries from a server's database, in whole months. Runs and their metrics
are kept. On PostgreSQL a month of traces is dropped as a partition; everything else is deleted row by row, and its
space is reused. A server started with the same --keep options does this every hour.
"""

EPILOG = """\
exit status: 0 success; 2 invalid request, a message says why

environment:
  POWERLAB_DATABASE         database (overridden by --database)
  POWERLAB_TRACES           trace store (overridden by --traces)

examples:
  powerlab database retire --keep-traces 13 --database postgresql://powerlab@db/powerlab
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    action = actions.add_parser(
        "retire",
        help="remove data past its retention",
        description="Permanently remove data older than the given number of whole months before the current one.",
    )
    add_keep_options(action)
    action.add_argument("--database", metavar="PATH_OR_URL", help="database (default: the local one)")
    action.add_argument("--traces", metavar="URL", help="trace store of the database, as for `powerlab serve`")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("this needs the server extra; run `pip install 'powerlab[server]'`.")
    from powerlab.cli.commands.database.retire import retire_all

    return retire_all(args)
