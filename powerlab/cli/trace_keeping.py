"""Carries out ``powerlab traces``."""

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
from powerlab.cli.run_source import open_existing
from powerlab.cli.trace_home import trace_home
from powerlab.domain.errors import PowerlabError

if TYPE_CHECKING:
    from powerlab.store import Store
    from powerlab.store.traces.parquet import ParquetTraceStore


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
