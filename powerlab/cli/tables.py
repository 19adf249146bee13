"""Tables for people and their shape for machines."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from powerlab.analysis.summary import PointSummary


def sweep_table(summaries: Sequence[PointSummary]) -> Table:
    """Return the table of a sweep: a row a point, the best rows marked, provenance beside every power figure."""
    raise NotImplementedError
