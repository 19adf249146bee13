"""What a search has measured of its plan, and what the power modes that it proposed have gained."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.analysis.best import GOALS, best_points, work_of
from powerlab.analysis.comparison import compare, margin
from powerlab.analysis.dimensions import in_words
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.analysis.wording import percent_words
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan


def in_contest(summaries: Sequence[PointSummary], plan: SweepPlan) -> tuple[PointSummary, ...]:
    """Return the points that an answer compares: all of a full grid's.

    A search measures most points once or twice, only to learn that they cannot be best; it repeats those that can be as
    often as the plan says. So its answer compares these; all of them, as long as there is none.
    """
    if plan.search_percent == 0:
        return tuple(summaries)
    return tuple(summary for summary in summaries if summary.run_count >= plan.repeats) or tuple(summaries)


def runs_in_contest(runs: Sequence[Run], plan: SweepPlan) -> list[Run]:
    """Return the runs of the points that :func:`in_contest` keeps."""
    kept = {summary.point for summary in in_contest(summarise(runs), plan)}
    return [run for run in runs if run.point in kept]


def set_aside(runs: Sequence[Run], plan: SweepPlan) -> dict[str, frozenset[Point]]:
    """Return, by goal, the points that a search for it does not compare: unlikely to be the best at that.

    They may well be the best at anything else, such as under a bound that the best one breaks.
    """
    left = frozenset(run.point for run in runs) - {run.point for run in runs_in_contest(runs, plan)}
    return dict.fromkeys(plan.goals_to_search, left) if left else {}


_ENDS = {
    False: "that another one is better is unlikely by the search's model (5 % at most).",
    True: "the search was interrupted, so another one may well be better.",
    None: "a search that ends by itself leaves at most 5 % that another one is better, by its model.",
}


def search_notes(runs: Sequence[Run], plan: SweepPlan, *, interrupted: bool | None = None) -> list[str]:
    """Return what a search has measured, and what proposed modes gained; nothing where nobody searched.

    Args:
        runs: those of the sweep.
        plan: the sweep's.
        interrupted: whether it was ended before its end; None where nobody knows.
    """
    if plan.search_percent == 0:
        return []
    measured = len({run.point.id for run in runs})
    sought = ", ".join(plan.goals_to_search)
    lines = [
        f"Search for {sought} (by more than {plan.search_percent:g} %): {measured} of {plan.point_count} points "
        f"measured, {len(runs)} runs of {plan.point_count * plan.repeats}. The answer compares the points with "
        f"{plan.repeats} runs; {_ENDS[interrupted]}"
    ]
    return lines + proposal_notes(runs, plan)


def proposal_notes(runs: Sequence[Run], plan: SweepPlan) -> list[str]:
    """Return a sentence for each goal and work: what the best proposed power mode gains on the best named one."""
    if not plan.proposed_modes:
        return []
    news = _best(runs, plan, proposed=True)
    olds = _best(runs, plan, proposed=False)
    found = [
        _gain(key[0], new, olds[key], runs)
        for key, new in news.items()
        if key in olds and key[0] in plan.goals_to_search
    ]
    return found or ["No proposed power mode was measured beside a named one, so nothing can be said of their gain."]


def _best(runs: Sequence[Run], plan: SweepPlan, *, proposed: bool) -> dict[tuple[str, str], Point]:
    """Return the best point by goal and work, of the proposed power modes or of the named ones."""
    of_modes = [run for run in runs if (run.point.mode in plan.proposed_modes) is proposed]
    found = best_points(in_contest(summarise(of_modes), plan))
    return {(best.goal, work_of(best.summary.point)): best.summary.point for best in found}


def _gain(goal: str, new: Point, old: Point, runs: Sequence[Run]) -> str:
    ratio = compare([run for run in runs if run.point == new], [run for run in runs if run.point == old], GOALS[goal])
    beside = f"{in_words(new)} (proposed) beside {in_words(old)} (named)"
    if ratio is None:
        return f"{goal.capitalize()} of {beside}: they cannot be compared."
    value, low, high = margin(ratio)
    if low is None or high is None:
        return f"{goal.capitalize()} of {beside}: {100 * value:+.1f} %, without an interval; add repeats."
    if low > 0:
        gain = percent_words(value, low, high)
        return f"{goal.capitalize()}: {in_words(new)} (proposed) gains {gain} on {in_words(old)}."
    if high < 0:
        return f"{goal.capitalize()}: no proposed mode gains on {in_words(old)}."
    return f"{goal.capitalize()} of {beside}: tied."
