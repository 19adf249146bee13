"""Stored runs, from a database or from a server: the same two questions either way."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from powerlab.cli.arguments.server import connect
from powerlab.cli.arguments.trace_store import open_trace_store
from powerlab.cli.stored.local_database import default_store
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict

if TYPE_CHECKING:
    from powerlab.store import Store


def stored_runs(args: argparse.Namespace) -> Iterator[Run]:
    """Yield the runs that ``--sweep``, ``--model`` and ``--verdict`` choose, in the order in which they arrived."""
    if args.server is not None:
        verdict = Verdict(args.verdict) if args.verdict else None
        yield from connect(args.server).runs(sweep_id=args.sweep, model=args.model, verdict=verdict)
        return
    from powerlab.store.reads import queries
    from powerlab.store.reads.filters import RunFilter

    filters = RunFilter(sweep_id=args.sweep, model=args.model, verdict=Verdict(args.verdict) if args.verdict else None)
    with closing(open_existing(args.database)) as store, store.session() as session:
        if args.sweep is not None:
            queries.sweep(session, args.sweep)
        for _, run in queries.stream_runs(session, filters):
            yield run


def stored_run(args: argparse.Namespace) -> Run:
    """Return the run ``args.run_id``; raises PowerlabError where there is none."""
    if args.server is not None:
        return connect(args.server).run(args.run_id)
    from powerlab.store.reads import queries

    with closing(open_existing(args.database)) as store, store.session() as session:
        return queries.run(session, queries.run_id_from(session, args.run_id))


def open_existing(address: str | None) -> Store:
    """Open a database for reading: a file that does not exist is a mistake here, not a filters for a new one."""
    import importlib.util
    from pathlib import Path

    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("a database needs the server extra; install `powerlab[server]`, or ask a --server.")
    from powerlab.store import open_store

    chosen = address or str(default_store())
    if "://" not in chosen and not Path(chosen).exists():
        raise PowerlabError(f"there is no database {chosen}; `powerlab profile` makes one, or give --database.")
    return open_store(chosen, traces=open_trace_store())
