"""``--search``: the search of a plan on a host, and what came of it in words."""

from __future__ import annotations

from powerlab.boards.registry import detect
from powerlab.domain.order import Done, Stage
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.duration import LOAD_S
from powerlab.search.searcher import Searcher
from powerlab.search.space import space_of
from powerlab.sweep.caps import caps_of
from powerlab.sweep.host import Host

_SETTING_S = 1.0
"""About what setting a power mode and putting the previous one back takes."""


def searcher_for(plan: SweepPlan, stage: Stage, host: Host, done: Done) -> Searcher:
    """Return the search of a plan's points, of which those in the modes of a stage can be run.

    Args:
        plan: with what is searched for.
        stage: modes that can be set within this boot.
        host: where.
        done: runs measured before, in any mode: the search learns from those whose figures are known.
    """
    vendor = {mode.name: caps_of(mode) for mode in detect(host.sysroot).vendor_modes}
    proposed = set(plan.proposed_modes)
    searcher = Searcher(
        space=space_of(plan.points(), vendor, host.device().core_count),
        goals=plan.goals_to_search,
        repeats=plan.repeats,
        epsilon=plan.search_percent / 100,
        visit_cost=_visit_cost(plan),
        seed=plan.seed,
        done=done,
        named=frozenset(mode for mode in plan.modes if mode not in proposed) if proposed else frozenset(),
    )
    for mode in plan.modes:
        if mode not in stage.modes:
            searcher.known.give_up(mode)
    return searcher


def _visit_cost(plan: SweepPlan) -> float:
    """Return what a stay in another power mode costs beside its runs, in runs: an idle baseline and the setting."""
    return (plan.idle_s + _SETTING_S) / (LOAD_S + plan.warm_up_s + plan.duration_s + plan.idle_s)


def ended_words(searcher: Searcher, plan: SweepPlan) -> str:
    """Return how much of a plan a search has measured, and why it ended, in a sentence."""
    points = len(searcher.space.points)
    measured = len(searcher.known.made)
    runs = sum(map(len, searcher.known.made.values()))
    goals = plan.goals_to_search
    named = goals[0] if len(goals) == 1 else f"{', '.join(goals[:-1])} or {goals[-1]}"
    why = (
        f"no other point is likely to be more than {plan.search_percent:g} % better in {named} (95 % confidence)"
        if searcher.settled
        else "no point is left"
    )
    return f"{measured} of {points} points measured, {runs} runs of {points * plan.repeats}; stopped because {why}."
