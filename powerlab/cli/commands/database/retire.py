"""``powerlab database retire``: remove data past its retention."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from dataclasses import replace

from sqlalchemy.exc import DBAPIError

from powerlab.cli import EXIT_OK
from powerlab.cli.arguments.retention import months_to_keep
from powerlab.domain.errors import PowerlabError
from powerlab.sources.opening import open_existing
from powerlab.sources.trace_store import open_trace_store
from powerlab.store.maintenance.retention import retire
from powerlab.store.tables.retirement import Kind

_ROWS = {Kind.TRACES: "trace chunks", Kind.EVENTS: "live events", Kind.AUDIT: "audit log entries"}


def retire_all(args: argparse.Namespace) -> int:
    """Remove data past its retention, and print what was removed."""
    keep = months_to_keep(args)
    if not keep:
        raise PowerlabError("give a retention: --keep-traces, --keep-events or --keep-audit with MONTHS.")
    traces = open_trace_store(args.traces)
    with closing(open_existing(args.database or os.environ.get("POWERLAB_DATABASE"))) as opened:
        store = replace(opened, traces=traces)
        for kind, months in keep.items():
            try:
                gone = retire(store, kind, months)
            except DBAPIError as error:
                raise PowerlabError(
                    f"cannot remove all old {kind}: the database is busy or unavailable "
                    f"({str(error.orig).partition(chr(10))[0]}); try again."
                ) from error
            files = f", and {gone.file_count} files," if gone.file_count else ""
            print(f"removed {gone.row_count} {_ROWS[kind]}{files} older than {gone.before:%d %B %Y}", flush=True)
    return EXIT_OK
