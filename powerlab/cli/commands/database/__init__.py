"""``powerlab database``: how long a server's database keeps what."""

from __future__ import annotations

import argparse
import importlib.util

from powerlab.cli.arguments.retention import add_keep_options
from powerlab.domain.errors import PowerlabError

DESCRIPTION = """\
Remove old traces, live events and events of the log from a server's database, by whole months. Runs and their figures
stay. On PostgreSQL a month of traces is a partition that is dropped; all else is deleted row by row, and its room is
used again. A server that is started with the same --keep options does it every hour.
"""

EPILOG = """\
exit status: 0 done; 2 the request cannot be carried out, one sentence says why

environment:
  POWERLAB_DATABASE         the database, unless --database says so
  POWERLAB_TRACES           where traces lie, unless --traces says so

examples:
  powerlab database retire --keep-traces 13 --database postgresql://powerlab@db/powerlab
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    action = actions.add_parser(
        "retire",
        help="remove what is older than so many months",
        description="Remove what is older than so many whole months before the present one. It does not come back.",
    )
    add_keep_options(action)
    action.add_argument("--database", metavar="PATH_OR_URL", help="which database (default: the local one)")
    action.add_argument("--traces", metavar="URL", help="where its traces lie, as `powerlab serve` takes it")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("a database needs the server extra; install `powerlab[server]`.")
    from powerlab.cli.commands.database.retire import retire_all

    return retire_all(args)
