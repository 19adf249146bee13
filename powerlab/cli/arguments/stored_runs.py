"""``--database``, ``--server`` and the filters: which stored runs a command reads."""

from __future__ import annotations

import argparse


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--database`` and ``--server``: where runs are read from."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--database", metavar="PATH_OR_URL", help="a database (default: the local one)")
    where.add_argument("--server", metavar="URL", help="a server instead of a database")


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what chooses runs."""
    parser.add_argument("--sweep", metavar="SWEEP", help="only this sweep's runs")
    parser.add_argument("--model", help="only this model's runs")
    parser.add_argument("--verdict", choices=("valid", "flagged", "void", "failed"), help="only runs judged so")
