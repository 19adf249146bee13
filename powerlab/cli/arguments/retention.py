"""``--keep-traces``, ``--keep-events``, ``--keep-audit``: retention in months."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from powerlab.store.tables.retirement import Kind

_WHAT = {
    "traces": "traces of runs",
    "events": "events of the live event stream",
    "audit": "the audit log",
}


def add_keep_options(parser: argparse.ArgumentParser) -> None:
    """Add a retention option for each kind of data that may expire."""
    for kind, what in _WHAT.items():
        parser.add_argument(
            f"--keep-{kind}", type=int, metavar="MONTHS", help=f"keep {what} for MONTHS (default: forever)"
        )


def months_to_keep(args: argparse.Namespace) -> dict[Kind, int]:
    """Return the retention in months of each kind that has one; the rest is kept forever.

    Raises:
        PowerlabError: a retention is below a month or above a hundred years.
    """
    from powerlab.store.maintenance.retention import check_months
    from powerlab.store.tables.retirement import Kind

    given = {kind: getattr(args, f"keep_{kind}") for kind in Kind}
    found = {kind: months for kind, months in given.items() if months is not None}
    for months in found.values():
        check_months(months)
    return found
