"""``powerlab export``: stored runs and their traces as CSV, NDJSON or Parquet."""

from __future__ import annotations

import argparse

from powerlab.cli.commands.runs import add_filter_arguments, add_source_arguments

_EPILOG = """\
exit status: 0 written; 2 the file cannot be written, or the database or server cannot be used

CSV and Parquet have a row a figure, with unit, 95 % interval and provenance, or with --traces a row a sample; NDJSON a
JSON document a run, or a chunk of samples. The columns: docs/exports.md.

examples:
  powerlab export --output runs.csv
  powerlab export --format ndjson --sweep SWEEP > runs.ndjson
  powerlab export --format parquet --output runs.parquet --server http://server:8765
  powerlab export --traces --run RUN --format parquet --output traces.parquet
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "export",
        help="write stored runs or traces as CSV, NDJSON or Parquet",
        description="Write stored runs, or the traces of a sweep or run, to a file or to standard output.",
        epilog=_EPILOG,
    )
    parser.add_argument("--format", choices=("csv", "ndjson", "parquet"), default="csv", help="default: csv")
    parser.add_argument("--output", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--traces", action="store_true", help="what was recorded, instead of the figures")
    parser.add_argument("--run", metavar="RUN", dest="run_id", help="only this run's traces")
    add_filter_arguments(parser)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from powerlab.cli.commands.export_body import export

    return export(args)
