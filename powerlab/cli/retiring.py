"""Carries out ``powerlab database``, and understands how long a server keeps what."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from dataclasses import replace

from sqlalchemy.exc import DBAPIError

from powerlab.cli import EXIT_OK
from powerlab.cli.run_source import open_existing
from powerlab.cli.trace_home import trace_home
from powerlab.domain.errors import PowerlabError
from powerlab.store.maintenance.retention import check_months, retire
from powerlab.store.tables.retirement import Kind

_ROWS = {Kind.TRACES: "chunks of traces", Kind.EVENTS: "live events", Kind.AUDIT: "events of the log"}


def kept(args: argparse.Namespace) -> dict[Kind, int]:
    """Return for how many months what is kept; what is kept for good is left out.

    Raises:
        PowerlabError: it is kept for no time, or for longer than a hundred years.
    """
    asked = {kind: getattr(args, f"keep_{kind}") for kind in Kind}
    found = {kind: months for kind, months in asked.items() if months is not None}
    for months in found.values():
        check_months(months)
    return found


def retire_all(args: argparse.Namespace) -> int:
    """Remove what is kept no longer, and say what went."""
    keep = kept(args)
    if not keep:
        raise PowerlabError("say how long what is kept: --keep-traces, --keep-events or --keep-audit with MONTHS.")
    traces = trace_home(args.traces)
    with closing(open_existing(args.database or os.environ.get("POWERLAB_DATABASE"))) as opened:
        store = replace(opened, traces=traces)
        for kind, months in keep.items():
            try:
                gone = retire(store, kind, months)
            except DBAPIError as error:
                raise PowerlabError(
                    f"not everything old of {kind} could be removed, because the database is in use or away "
                    f"({str(error.orig).partition(chr(10))[0]}); try again."
                ) from error
            files = f", and {gone.file_count} files," if gone.file_count else ""
            print(f"removed {gone.row_count} {_ROWS[kind]}{files} from before {gone.before:%d %B %Y}", flush=True)
    return EXIT_OK
