"""``powerlab traces``: traces in files instead of in the database."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.trace_store import trace_home
from powerlab.cli.stored.runs import open_existing
from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.store import Store
    from powerlab.store.traces.parquet import ParquetTraceStore

DESCRIPTION = """\
Keep traces as Parquet files in a folder or in S3-compatible object storage. A server started with the same --traces
writes there what arrives, and puts small files together every hour; docs/guides/scale.md says when that is worth it.
"""

EPILOG = """\
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
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
    return {"move": move_all, "compact": compact_all}[args.action](args)


def move_all(args: argparse.Namespace) -> int:
    """Move traces out of the database."""
    with _opened(args) as (store, home):
        from powerlab.store.traces.relocation import move

        runs = chunks = samples = before = after = damaged = 0
        for one in move(store, home):
            if one.complaint:
                damaged += 1
                print(f"run {one.run_id} stays in the database: {one.complaint}", flush=True)
                continue
            runs, chunks, samples = runs + 1, chunks + one.chunk_count, samples + one.sample_count
            before, after = before + one.before_bytes, after + one.after_bytes
        print(
            f"moved the traces of {runs} runs to {home.objects.address}: {chunks} chunks, {samples} samples, "
            f"{before} bytes in the database, {after} bytes in files"
        )
        return EXIT_INCOMPLETE if damaged else EXIT_OK


def compact_all(args: argparse.Namespace) -> int:
    """Put small files together."""
    if not 0 <= args.grace < math.inf:
        raise PowerlabError(f"--grace is {args.grace}; give a number of seconds, at least 0.")
    with _opened(args) as (store, home):
        from powerlab.store.traces.compaction import compact

        done = compact(store, home, grace=timedelta(seconds=args.grace), fewest=2)
        for file in done.damaged:
            print(f"{file} is missing or damaged; restore it from a backup")
        print(
            f"{home.objects.address}: {done.merged_count} files put together into {done.made_count}, "
            f"{done.removed_count} removed"
        )
        return EXIT_INCOMPLETE if done.damaged else EXIT_OK


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[tuple[Store, ParquetTraceStore]]:
    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("a database needs the server extra; install `powerlab[server,scale]`.")
    home = trace_home(args.traces)
    with closing(open_existing(args.database or os.environ.get("POWERLAB_DATABASE"))) as store:
        from powerlab.store.traces.parquet import ParquetTraceStore

        if not isinstance(home, ParquetTraceStore):
            raise PowerlabError(
                "these traces lie in the database; say where files are, with --traces or POWERLAB_TRACES."
            )
        yield store, home
