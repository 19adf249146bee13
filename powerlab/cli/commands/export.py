"""``powerlab export``: stored runs and their traces as CSV, NDJSON or Parquet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import urlencode

from powerlab.cli.arguments.server import connect
from powerlab.cli.arguments.stored_runs import add_filter_arguments, add_source_arguments
from powerlab.cli.stored.runs import open_existing, stored_runs
from powerlab.domain.errors import PowerlabError

DESCRIPTION = "Write stored runs, or the traces of a sweep or run, to a file or to standard output."

EPILOG = """\
exit status: 0 success; 2 the file cannot be written, or the database or server cannot be used

CSV and Parquet have one row per metric, with unit, 95 % interval and provenance, or with --traces one row per sample.
NDJSON has one document per run, or per chunk of samples. docs/exports.md lists the columns.

examples:
  powerlab export --output runs.csv
  powerlab export --format ndjson --sweep SWEEP > runs.ndjson
  powerlab export --format parquet --output runs.parquet --server http://server:8765
  powerlab export --traces --run RUN --format parquet --output traces.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--format", choices=("csv", "ndjson", "parquet"), default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    parser.add_argument("--traces", action="store_true", help="export the recorded traces instead of the metrics")
    parser.add_argument("--run", metavar="RUN", dest="run_id", help="only traces of this run (with --traces)")
    add_filter_arguments(parser)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return export(args)


_BLOCK_BYTES = 1 << 16
T = TypeVar("T")


def export(args: argparse.Namespace) -> int:
    """Export runs or traces.

    Raises:
        PowerlabError: the file cannot be written, the source cannot be used, or the options contradict each other.
    """
    if args.run_id is not None and not args.traces:
        raise PowerlabError("--run needs --traces; to print one run, use `powerlab runs show RUN --json`.")
    if args.traces and (args.model or args.verdict):
        raise PowerlabError("--traces can only be filtered by --sweep or --run; omit --model and --verdict.")
    parts = _from_server(args) if args.server is not None else _from_database(args)
    if args.output is None:
        _write(sys.stdout.buffer, parts)
        return 0
    try:
        with Path(args.output).open("wb") as file:
            _write(file, parts)
    except OSError as error:
        raise PowerlabError(
            f"cannot write --output {args.output} ({error.strerror}); choose a file in an existing, writable directory."
        ) from error
    return 0


def _write(file: BinaryIO, parts: Iterable[bytes]) -> None:
    for part in parts:
        file.write(part)
    file.flush()


def _begun(parts: Iterator[T]) -> Iterator[T]:
    """Fetch the first part now, so that a failing database or server leaves no partial file."""
    first = next(parts, None)
    return parts if first is None else chain((first,), parts)


def _from_server(args: argparse.Namespace) -> Iterator[bytes]:
    """Pass on what the server exports."""
    chosen = {"format": args.format, "sweep_id": args.sweep, "run_id": args.run_id}
    chosen |= {"model": args.model, "verdict": args.verdict}
    fields = urlencode({name: value for name, value in chosen.items() if value is not None})
    what = "traces" if args.traces else "runs"
    _, blocks = connect(args.server).transport.stream(f"/exports/{what}?{fields}", 0, _BLOCK_BYTES)
    return blocks


def _from_database(args: argparse.Namespace) -> Iterator[bytes]:
    return _begun(_traces(args)) if args.traces else _runs(args)


def _runs(args: argparse.Namespace) -> Iterator[bytes]:
    from powerlab.protocol.export import FIGURE_COLUMNS, csv_lines, figure_rows, ndjson_lines

    runs = _begun(stored_runs(args))
    if args.format == "parquet":
        from powerlab.store.reads.parquet import rows_as_parquet

        return rows_as_parquet(FIGURE_COLUMNS, figure_rows(runs))
    return _encoded(csv_lines(runs) if args.format == "csv" else ndjson_lines(runs))


def _traces(args: argparse.Namespace) -> Iterator[bytes]:
    from powerlab.protocol.trace_export import trace_csv_lines, trace_ndjson_lines
    from powerlab.store.reads.trace_stream import chosen_run, stream_chunks

    with closing(open_existing(args.database)) as store, store.session() as session:
        chunks = stream_chunks(session, args.sweep, chosen_run(session, args.sweep, args.run_id))
        if args.format == "parquet":
            from powerlab.store.reads.parquet import traces_as_parquet

            yield from traces_as_parquet(chunks)
        else:
            yield from _encoded(trace_csv_lines(chunks) if args.format == "csv" else trace_ndjson_lines(chunks))


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)
