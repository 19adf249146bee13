"""Rows of a list of sweeps, each with its answer: on the home page, and as a device's history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from powerlab.domain.quantity import Metric
from powerlab.domain.sweep import Point
from powerlab.protocol.records import SweepRecord
from powerlab.store.reads.answers import Answer, stored_answers

_HEADLINES = ("efficiency", "throughput")
"""What a list says of a sweep: the point that needs least energy, or where no power is known the fastest one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One answer in a line.

    Attributes:
        work: what was asked, where the sweep asked several things; else empty.
        point: the best point.
        metric: J per image there, or images per second where no power is known.
        decision: such as ``winner``.
        statement: the decision in a sentence.
    """

    work: str
    point: Point
    metric: Metric
    decision: str
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSweep:
    """A sweep with its headlines; ``headlines`` is None while they are not worked out."""

    record: SweepRecord
    headlines: tuple[Headline, ...] | None


def listed(session: Session, records: Sequence[SweepRecord]) -> list[ListedSweep]:
    """Return rows of sweeps with their stored answers, which takes one query."""
    answers = stored_answers(session, [record.id for record in records])
    return [
        ListedSweep(record=record, headlines=headlines(answers[record.id]) if record.id in answers else None)
        for record in records
    ]


def headlines(answers: Sequence[Answer]) -> tuple[Headline, ...]:
    """Return one line for each work and each provenance that its best figure has."""
    by_work: dict[str, dict[str, list[Answer]]] = {}
    for answer in answers:
        by_work.setdefault(answer.work, {}).setdefault(answer.goal, []).append(answer)
    several = len(by_work) > 1
    return tuple(
        Headline(
            work=work if several else "",
            point=answer.point,
            metric=answer.energy or answer.metric,
            decision=answer.decision.value,
            statement=answer.statement,
        )
        for work, found in by_work.items()
        for answer in _most_telling(found)
    )


def _most_telling(by_goal: Mapping[str, list[Answer]]) -> list[Answer]:
    return next((by_goal[goal] for goal in _HEADLINES if goal in by_goal), [])
