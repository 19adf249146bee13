"""``powerlab traces``: traces in files instead of in the database."""

from __future__ import annotations

import argparse

_DESCRIPTION = """\
Keep traces as Parquet files in a folder or in S3-compatible object storage. A server started with the same --traces
writes there what arrives, and puts small files together every hour; docs/guides/scale.md says when that is worth it.
"""

_EPILOG = """\
exit status: 0 done; 1 done, but some samples are damaged: what they are is said, and nothing of them is changed;
2 the request cannot be carried out, one sentence says why

environment:
  POWERLAB_DATABASE         the database, unless --database says so
  POWERLAB_TRACES           where traces lie, unless --traces says so
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
                            the keys of object storage

examples:
  powerlab traces move --database /srv/powerlab/powerlab.db --traces file:///srv/powerlab/traces
  powerlab traces compact --traces 's3://powerlab/lab-1?endpoint=https://storage.example:9000'
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "traces",
        help="traces in files: move them there, put small files together",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    move = actions.add_parser(
        "move",
        help="move the traces that lie in the database into files",
        description="Move traces out of the database, run by run, each held against its SHA-256. It may be stopped and "
        "started again, while a server is running.",
    )
    compact = actions.add_parser(
        "compact",
        help="put small files together and remove what nobody needs",
        description="Put each device's small files of a month together, and remove files that no run in the database "
        "refers to. A server does it every hour; several at once do no harm.",
    )
    compact.add_argument(
        "--grace",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="how long files are kept that nobody refers to, for readers that still do (default: 3600)",
    )
    for action in (move, compact):
        action.add_argument("--database", metavar="PATH_OR_URL", help="the database whose traces they are")
        action.add_argument(
            "--traces", metavar="URL", help="file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=NAME"
        )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli import trace_keeping

    return {"move": trace_keeping.move_all, "compact": trace_keeping.compact_all}[args.action](args)
