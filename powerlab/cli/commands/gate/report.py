"""A gate's report and its plan on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.dimensions import varying
from powerlab.analysis.gate.gate import GateReport
from powerlab.analysis.gate.planning import GatePlan
from powerlab.analysis.trends.versions import Difference
from powerlab.cli.commands.gate.words import HEADINGS, cells, headline, percent, remarks
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.domain.quantity import METRICS


def show_gate(report: GateReport, changed: Sequence[Difference], title: str) -> None:
    """Print the verdict, a row for each figure, and what there is to say."""
    console = table_console()
    table = plain_table(*HEADINGS)
    for words in cells(report):
        table.add_row(*words)
    print_neatly(console, headline(report, title), "", table, "", *remarks(report, changed))


def show_plan(plan: GatePlan, title: str) -> None:
    """Print the scatter of each figure between sweeps, and what a gate takes."""
    console, name_of = table_console(), varying(row.point for row in plan.rows)
    table = plain_table("point", "metric", "between sweeps", "sweeps on each side")
    for row in plan.rows:
        scatter = f"{percent(row.deviation)} {row.provenance}, {row.sweep_count} sweeps"
        needed = "too many" if row.sweeps_needed is None else str(row.sweeps_needed)
        table.add_row(name_of(row.point), METRICS[row.metric].title, scatter, needed)
    print_neatly(console, f"Scatter of {title} between sweeps (relative standard deviation):", "", table, "")
    print_neatly(console, conclusion(plan))


def conclusion(plan: GatePlan) -> str:
    """Return what a gate takes, in a sentence."""
    needed = plan.sweeps_needed
    if needed is None:
        return "Sweeps of this device differ too much for such a gate: make runs longer, or allow a larger loss."
    return (
        f"Measure {needed} sweeps of the baseline and {needed} of the change, in turns ({2 * needed * plan.run_count} "
        f"runs): with 95 % probability each they find a loss of {percent(plan.found_loss)} and let a change without "
        f"one pass --max-loss {percent(plan.max_loss)}."
    )
