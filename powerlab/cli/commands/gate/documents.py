"""A gate's report and its plan as JSON-compatible values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from powerlab.analysis.dimensions import in_words
from powerlab.analysis.gate.gate import GateReport, GateRow
from powerlab.analysis.gate.planning import GatePlan
from powerlab.analysis.trends.versions import Difference
from powerlab.cli.commands.gate.words import headline, what_to_do


def gate_document(report: GateReport, changed: Sequence[Difference]) -> dict[str, Any]:
    """Return a report; losses are parts, 0.03 for 3 %."""
    points = list(dict.fromkeys(row.point.workload.model for row in report.rows))
    found: dict[str, Any] = msgspec.to_builtins(report)
    found["rows"] = [_row(row) for row in report.rows]
    found["sweeps_needed"] = report.sweeps_needed
    found["differences"] = msgspec.to_builtins(changed)
    found["statement"] = headline(report, ", ".join(points))
    found["what_to_do"] = what_to_do(report)
    return found


def _row(row: GateRow) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(row)
    found["point_id"], found["point_in_words"] = row.point.id, in_words(row.point)
    if row.loss is not None:
        low, high = row.loss.interval()
        found["loss"] = {
            "part": row.loss.part,
            "low": low,
            "high": high,
            "deviation": row.loss.deviation,
            "degrees": row.loss.degrees,
        }
    return found


def plan_document(plan: GatePlan) -> dict[str, Any]:
    """Return a plan; losses and deviations are parts."""
    found: dict[str, Any] = msgspec.to_builtins(plan)
    for row, words in zip(found["rows"], plan.rows, strict=True):
        row["point_id"], row["point_in_words"] = words.point.id, in_words(words.point)
    found["sweeps_needed"] = plan.sweeps_needed
    return found
