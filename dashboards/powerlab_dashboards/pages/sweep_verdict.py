"""The verdict of a sweep: one line that a person can repeat, and a card for each goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from powerlab.analysis.best import contenders, work_of
from powerlab.analysis.budget import limit
from powerlab.analysis.searched import in_contest, search_notes
from powerlab.analysis.summary import PointSummary
from powerlab.analysis.verdict import Decision
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.protocol.records import SweepRecord
from powerlab.store.reads.answers import Answer, answers_of, stored_answers
from powerlab.store.reads.sweep_results import runs_of_points
from powerlab_dashboards.format import model_label, shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.pages.sweep_list import Headline, headlines
from powerlab_dashboards.pages.sweep_picker import apply_point_command
from powerlab_dashboards.places import naming

GOAL_TITLES: Mapping[str, str] = {
    "latency": mark("Lowest latency"),
    "throughput": mark("Highest throughput"),
    "efficiency": mark("Best efficiency"),
}
_LINES: Mapping[str, str] = {
    "energy_per_image_j": mark(
        "%(work)s on %(device)s needs the least energy with %(place)s: %(figure)s (%(source)s)."
    ),
    "efficiency_img_per_s_per_w": mark(
        "%(work)s on %(device)s is most efficient with %(place)s: %(figure)s (%(source)s)."
    ),
    "throughput_img_per_s": mark("%(work)s on %(device)s is fastest with %(place)s: %(figure)s (%(source)s)."),
}  # fmt: skip
_MOST_LINES = 4
_DECISIONS: Mapping[Decision, str] = {
    Decision.WINNER: mark("It beats every other point."),
    Decision.TIED: mark("It is tied with others."),
    Decision.NOT_ENOUGH_DATA: mark("There is not enough data to call it the winner."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The best point at one thing.

    Attributes:
        answer: the point, its figure and what may be claimed.
        summary: the point's repeats.
        place: the point in the words in which the points differ.
        limit: what its interval is mostly made of, in words.
        command: what sets its power mode on the device.
    """

    answer: Answer
    summary: PointSummary
    place: str
    limit: str
    command: str


def answers_for(
    session: Session, record: SweepRecord, summaries: Sequence[PointSummary], runs: Sequence[Run] | None
) -> tuple[Answer, ...]:
    """Return the answers of a sweep: the stored ones, or as they are worked out from what there is so far.

    Args:
        session: nothing is written.
        record: the sweep.
        summaries: its points.
        runs: all of its runs, if they are at hand.
    """
    found = stored_answers(session, [record.id]).get(record.id)
    if found is not None:
        return found
    compared = in_contest(summaries, record.plan)
    return answers_of(compared, runs or runs_of_points(session, record.id, contenders(compared)))


def search_lines(
    session: Session, record: SweepRecord, summaries: Sequence[PointSummary], runs: Sequence[Run] | None
) -> list[str]:
    """Return what a search has measured, and what the power modes that it proposed gained; none of a full grid.

    Args:
        session: nothing is written.
        record: the sweep.
        summaries: its points.
        runs: all of its runs, if they are at hand.
    """
    if record.plan.search_percent == 0 or not summaries:
        return []
    made = runs or runs_of_points(session, record.id, [summary.point for summary in summaries])
    return search_notes(made, record.plan, interrupted=record.interrupted)


def verdict_lines(record: SweepRecord, answers: Sequence[Answer], summaries: Sequence[PointSummary]) -> list[str]:
    """Return the answer in a sentence or two for each work, the first few; none if there is no answer."""
    alike = _by_work(summaries)
    return [
        _line(record, line, line.work or answers[0].work, alike)
        for line in headlines(answers)
        if line.metric.name in _LINES
    ][:_MOST_LINES]


def _line(record: SweepRecord, line: Headline, work: str, by_work: Mapping[str, Sequence[PointSummary]]) -> str:
    rivals = [summary for summary in by_work.get(work, ()) if summary.metric(line.metric.name)]
    said = _(
        _LINES[line.metric.name],
        work=model_label(work),
        device=record.place,
        place=naming(summary.point for summary in rivals)(line.point),
        figure=shown(line.metric).sentence,
        source=_(line.metric.provenance.value),
    )
    decision = _("It is the only point.") if len(rivals) < 2 else _(_DECISIONS[Decision(line.decision)])
    return f"{said} {decision}"


def _by_work(summaries: Sequence[PointSummary]) -> dict[str, list[PointSummary]]:
    found: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        found.setdefault(work_of(summary.point), []).append(summary)
    return found


def cards_by_work(
    record: SweepRecord, answers: Sequence[Answer], summaries: Sequence[PointSummary], server: str
) -> dict[str, list[Card]]:
    """Return the cards, grouped by what was asked of the device."""
    by_point: dict[Point, PointSummary] = {summary.point: summary for summary in summaries}
    named = {work: naming(one.point for one in alike) for work, alike in _by_work(summaries).items()}
    cards: dict[str, list[Card]] = {}
    for answer in answers:
        summary = by_point.get(answer.point)
        if summary is None:
            continue
        card = Card(
            answer=answer,
            summary=summary,
            place=named[answer.work](answer.point),
            limit=limit(summary.budget, answer.metric.name),
            command=apply_point_command(record.id, answer.point.id, server),
        )
        cards.setdefault(answer.work, []).append(card)
    return cards
