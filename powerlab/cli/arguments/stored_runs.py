"""``--database``, ``--server`` and the filters: which stored runs a command reads."""

from __future__ import annotations

import argparse


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--database`` and ``--server``: the source of the runs."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--database", metavar="PATH_OR_URL", help="read this database (default: the local one)")
    where.add_argument("--server", metavar="URL", help="read from a server instead")


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run filters."""
    parser.add_argument("--sweep", metavar="SWEEP", help="only runs of this sweep")
    parser.add_argument("--model", help="only runs of this model")
    parser.add_argument("--verdict", choices=("valid", "flagged", "void", "failed"), help="only runs with this verdict")
