"""``--search``: the search of a plan on a host, and what came of it in words."""

from __future__ import annotations

from powerlab.boards.registry import detect
from powerlab.domain.order import Stage
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.duration import LOAD_S
from powerlab.search.searcher import Searcher
from powerlab.search.space import space_of
from powerlab.sweep.caps import caps_of
from powerlab.sweep.host import Host

_SETTING_S = 1.0
"""About what setting a power mode and putting the previous one back takes."""


def searcher_for(plan: SweepPlan, stage: Stage, host: Host, done: frozenset[tuple[str, int]]) -> Searcher:
    """Return the search of a plan's points in the modes of a stage.

    Args:
        plan: with what is searched for.
        stage: modes that can be set within this boot.
        host: where.
        done: (point id, repeat) of runs measured before: their figures are not known here, so they only count.
    """
    vendor = {mode.name: caps_of(mode) for mode in detect(host.sysroot).vendor_modes}
    points = [point for point in plan.points() if point.mode in stage.modes]
    proposed = set(plan.proposed_modes)
    return Searcher(
        space=space_of(points, vendor, host.device().core_count),
        goals=plan.goals_to_search,
        repeats=plan.repeats,
        epsilon=plan.search_percent / 100,
        visit_cost=_visit_cost(plan),
        seed=plan.seed,
        done=done,
        named=frozenset(mode for mode in plan.modes if mode not in proposed) if proposed else frozenset(),
    )


def _visit_cost(plan: SweepPlan) -> float:
    """Return what a stay in another power mode costs beside its runs, in runs: an idle baseline and the setting."""
    return (plan.idle_s + _SETTING_S) / (LOAD_S + plan.warm_up_s + plan.duration_s + plan.idle_s)


def ended_words(searcher: Searcher, plan: SweepPlan) -> str:
    """Return how much of a plan a search has measured, and why it ended, in a sentence."""
    points = len(searcher.space.points)
    measured = sum(count > 0 for count in searcher.known.made.values())
    runs = sum(searcher.known.made.values())
    goals = plan.goals_to_search
    named = goals[0] if len(goals) == 1 else f"{', '.join(goals[:-1])} or {goals[-1]}"
    why = (
        f"no other point is likely to be more than {plan.search_percent:g} % better in {named} (95 % confidence)"
        if searcher.settled
        else "no point is left"
    )
    return f"{measured} of {points} points measured, {runs} runs of {points * plan.repeats}; stopped because {why}."
