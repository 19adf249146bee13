"""``powerlab traces``: store traces in files instead of the database."""

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
from powerlab.domain.errors import PowerlabError
from powerlab.sources.opening import open_existing
from powerlab.sources.trace_store import open_trace_store

if TYPE_CHECKING:
    from powerlab.store import Store
    from powerlab.store.traces.parquet import ParquetTraceStore

DESCRIPTION = """\
Store traces as Parquet files in a directory or in S3-compatible object storage. A server started with the same --traces
writes new traces there and compacts small files every hour; docs/guides/scale.md says when that pays off.
"""

EPILOG = """\
exit status: 0 success; 1 completed, but some damaged samples were reported and left unchanged; 2 invalid request, a
message says why

environment:
  POWERLAB_DATABASE         database (overridden by --database)
  POWERLAB_TRACES           trace store (overridden by --traces)
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
                            credentials of the object storage

examples:
  powerlab traces move --database /srv/powerlab/powerlab.db --traces file:///srv/powerlab/traces
  powerlab traces compact --traces 's3://powerlab/lab-1?endpoint=https://storage.example:9000'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    move = actions.add_parser(
        "move",
        help="move traces from the database into files",
        description="Move traces from the database into files, run by run, verifying SHA-256 checksums. Safe to "
        "interrupt and repeat, also while a server is running.",
    )
    compact = actions.add_parser(
        "compact",
        help="merge small files and delete unreferenced ones",
        description="Merge each device's small files of a month and delete files that no run in the database refers "
        "to. A server does this every hour; concurrent runs are safe.",
    )
    compact.add_argument(
        "--grace",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="how long to keep unreferenced files for readers that still use them (default: 3600)",
    )
    for action in (move, compact):
        action.add_argument("--database", metavar="PATH_OR_URL", help="database (default: the local one)")
        action.add_argument(
            "--traces", metavar="URL", help="file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL&region=NAME"
        )


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return {"move": move_all, "compact": compact_all}[args.action](args)


def move_all(args: argparse.Namespace) -> int:
    """Move traces from the database into files."""
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
    """Merge small files."""
    if not 0 <= args.grace < math.inf:
        raise PowerlabError(f"invalid --grace {args.grace}: give a number of seconds, 0 or more.")
    with _opened(args) as (store, home):
        from powerlab.store.traces.compaction import compact

        done = compact(store, home, grace=timedelta(seconds=args.grace), fewest=2)
        for file in done.damaged:
            print(f"{file} is missing or damaged; restore it from a backup")
        print(
            f"{home.objects.address}: {done.merged_count} files merged into {done.made_count}, "
            f"{done.removed_count} deleted"
        )
        return EXIT_INCOMPLETE if done.damaged else EXIT_OK


@contextmanager
def _opened(args: argparse.Namespace) -> Iterator[tuple[Store, ParquetTraceStore]]:
    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("this needs the server extra; run `pip install 'powerlab[server,scale]'`.")
    home = open_trace_store(args.traces)
    with closing(open_existing(args.database or os.environ.get("POWERLAB_DATABASE"))) as store:
        from powerlab.store.traces.parquet import ParquetTraceStore

        if not isinstance(home, ParquetTraceStore):
            raise PowerlabError("no trace store for files is configured; set --traces or POWERLAB_TRACES.")
        yield store, home
