"""The result of a sweep: sentences for people, one document for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from powerlab.analysis.best import Best, best_points, pareto_front
from powerlab.analysis.dimensions import varying
from powerlab.analysis.headlines import headlines
from powerlab.analysis.precision import until_notes
from powerlab.analysis.searched import in_contest, search_notes
from powerlab.analysis.summary import summarise
from powerlab.cli.output.sweep_table import format_figure
from powerlab.domain.device import Device
from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import METRICS
from powerlab.domain.rigour import LEVELS
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import SweepPlan

_MAX_NOTES = 8
_ID_DIGITS = 8


def answer(runs: Sequence[Run], options: str = "") -> list[str]:
    """Return one sentence per goal: the best point, its figure, and winner, tied or not enough data and what to do.

    Args:
        runs: those of one sweep.
        options: what ``powerlab repeat`` needs to find the sweep and its device, with a blank before each option.
    """
    summaries = summarise(runs)
    found = best_points(summaries, runs)
    if not found:
        return ["No run has usable figures, so there is no best point."]
    named = varying(summary.point for summary in summaries)
    sweep = f"{runs[0].sweep_id[:_ID_DIGITS]}{options}"
    return [_sentence(best, named(best.summary.point), sweep) for best in found]


def _sentence(best: Best, point: str, sweep: str) -> str:
    unit = METRICS[best.metric.name].unit
    figure = f"{format_figure(best.metric)} {unit} ({best.metric.provenance})"
    command = f" (`powerlab repeat {sweep} --add {best.missing_repeats}`)" if best.missing_repeats else ""
    return f"Best {best.goal}: {figure} with {point}; {best.statement}{command}."


def notes(
    runs: Sequence[Run], total: TotalFormula | None, plan: SweepPlan, *, interrupted: bool | None = None
) -> list[str]:
    """Return the notes below the table: the rigour, what a search says, what the power covers, and the findings."""
    repeats = f"{plan.repeats} repeats" + (f" to {plan.most_repeats}" if plan.until_percent else "")
    level = LEVELS[plan.rigour]
    lines = [f"Rigour {plan.rigour} ({level.words}): runs of at least {plan.duration_s:g} s, {repeats}."]
    lines += until_notes(runs, plan)
    lines += search_notes(runs, plan, interrupted=interrupted)
    lines += _engines(runs)
    if total is None:
        lines.append("No power: no source can be read here; `powerlab doctor` says what to do.")
    else:
        proposed = "; powerlab does not know this board and proposes this total" if total.proposed else ""
        lines.append(f"Power is {' + '.join(total.rails)} ({total.scope}{proposed}).")
    counted = Counter((finding.verdict, finding.rule) for run in runs for finding in run.findings)
    examples = {(finding.verdict, finding.rule): finding.detail for run in runs for finding in run.findings}
    for (verdict, rule), count in counted.most_common(_MAX_NOTES):
        times = "once" if count == 1 else f"{count} times"
        lines.append(f"{verdict} ({rule}, {times}): {examples[verdict, rule].rstrip('.')}.")
    return lines


def _engines(runs: Sequence[Run]) -> list[str]:
    """Return the engines measured, and how far their outputs differ; empty for the built-in one alone."""
    kept = [(run.point.workload.engine, run.conditions) for run in runs if run.conditions is not None]
    names = {f"{engine} {conditions.engine_version}".strip(): None for engine, conditions in kept}
    apart = [conditions.output_difference for _, conditions in kept if conditions.output_difference is not None]
    if all(engine == "builtin" for engine, _ in kept):
        return []
    compared = (
        f"; outputs differ by at most {max(apart):.1e} of the largest value" if apart else "; outputs not compared"
    )
    return [f"Engines: {', '.join(names)}{compared}."]


def complete(runs: Sequence[Run], run_count: int) -> bool:
    """Whether every run was measured, extra repeats included, and none failed or is void."""
    return len(runs) == run_count and all(run.verdict in {Verdict.VALID, Verdict.FLAGGED} for run in runs)


def document(sweep_id: str, device: Device, plan: SweepPlan, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the whole sweep as JSON-compatible values, as ``--json`` prints it."""
    summaries = summarise(runs)
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "sweep_id": sweep_id,
            "device": device,
            "plan": plan,
            "runs": runs,
            "summaries": [{"point_id": summary.point.id, **msgspec.to_builtins(summary)} for summary in summaries],
            "best": headlines(in_contest(summaries, plan), runs),
            "pareto_front": [summary.point.id for summary in pareto_front(summaries)],
        }
    )
    return found
