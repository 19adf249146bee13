"""Answers a question from stored runs of one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from powerlab.analysis.best import work_of
from powerlab.analysis.operating_point.arrivals import at_rate
from powerlab.analysis.operating_point.of_work import Alike, answer_of
from powerlab.analysis.operating_point.question import GOALS, Question
from powerlab.analysis.operating_point.records import Answer
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point

_SEARCHED: Mapping[str, str] = {"energy": "efficiency", "throughput": "throughput"}
"""By goal, the one of a search that ranks points alike while they are always busy."""


def operating_points(
    runs: Sequence[Run], question: Question, aside: Mapping[str, frozenset[Point]] | None = None
) -> tuple[Answer, ...]:
    """Return the operating point for each kind of work, and each provenance of the figures it is chosen by.

    Args:
        runs: of one device; repeats of a point may come from several sweeps.
        question: what is asked.
        aside: by goal of a search, the points that it gave up for that goal.

    Raises:
        PowerlabError: no run is valid, no point has the goal's figure, or no point keeps all bounds: with the bound and
            by how much it is missed.
    """
    _check_valid(runs)
    goal = question.goal or ("energy" if any(run.metric(GOALS["energy"]) for run in runs) else "latency")
    seen = runs if question.rate_img_per_s is None else at_rate(runs, question.rate_img_per_s)
    busy = {summary.point: summary for summary in summarise(runs)}
    groups: dict[tuple[str, Provenance], list[PointSummary]] = {}
    for summary in summarise(seen):
        if (figure := summary.metric(GOALS[goal])) is not None:
            groups.setdefault((work_of(summary.point), figure.provenance), []).append(summary)
    if not groups:
        raise PowerlabError(_no_figure(goal, runs, question))
    runs_by_point, seen_by_point = _by_point(runs), _by_point(seen)
    given_up = (aside or {}).get(_SEARCHED.get(goal, ""), frozenset())
    found = tuple(
        answer_of(
            Alike(
                work=work,
                goal=goal,
                provenance=provenance,
                question=question,
                summaries=tuple(summaries),
                seen=seen_by_point,
                busy=tuple(one for point, one in busy.items() if work_of(point) == work),
                runs=runs_by_point,
                aside=given_up if question.rate_img_per_s is None else frozenset(),
            )
        )
        for (work, provenance), summaries in groups.items()
    )
    if all(answer.best is None for answer in found):
        raise PowerlabError(_nowhere(found))
    return found


def _by_point(runs: Sequence[Run]) -> dict[Point, list[Run]]:
    found: dict[Point, list[Run]] = {}
    for run in runs:
        found.setdefault(run.point, []).append(run)
    return found


def _check_valid(runs: Sequence[Run]) -> None:
    if not runs:
        raise PowerlabError("there are no runs to choose from; wait for the first ones, or name another sweep.")
    if any(run.verdict is Verdict.VALID for run in runs):
        return
    finding = next((finding for run in runs for finding in run.findings if finding.verdict is run.verdict), None)
    reason = "" if finding is None else f" (the first is {finding.verdict}: {finding.detail.rstrip('.')})"
    raise PowerlabError(
        f"none of the {len(runs)} runs is valid, so no operating point can be recommended{reason}; measure again, and "
        "see `powerlab doctor` for what disturbs."
    )


def _no_figure(goal: str, runs: Sequence[Run], question: Question) -> str:
    name, rate = GOALS[goal], question.rate_img_per_s
    throughputs = [run.metric("throughput_img_per_s") for run in runs]
    fastest = max((one.value for one in throughputs if one is not None), default=0.0)
    if rate is not None and fastest < rate:
        lacking = f"the fastest gives {fastest:.1f} img/s, {rate - fastest:.1f} too few"
        return f"no point keeps up with {rate:g} img/s: {lacking}."
    what = METRICS[name].title.lower()
    if rate is not None and any(run.metric(name) is not None for run in runs):
        what = "idle power, which energy at an arrival rate takes"
    return (
        f"no usable run has the figure for the goal {goal} ({what}); choose another goal, or measure where "
        "`powerlab doctor` shows a power source."
    )


def _nowhere(found: Sequence[Answer]) -> str:
    if len(found) == 1:
        return found[0].statement
    return "; ".join(f"{answer.work} ({answer.provenance}): {answer.statement.rstrip('.')}" for answer in found) + "."
