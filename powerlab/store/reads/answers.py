"""Answers of finished sweeps: which point was best at what, as :mod:`powerlab.analysis.best` decided.

They are worked out with the summaries, once the sweep is over, so that a list of sweeps can show them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.analysis.best import best_points, work_of
from powerlab.analysis.summary import METHOD, PointSummary
from powerlab.analysis.verdict import Decision
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.store.tables import SweepSummaryRow

_ENERGY = "energy_per_image_j"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The best point at one thing, without the points it was compared with.

    Attributes:
        work: what was asked of the device: the model and how it is fed.
        goal: a key of :data:`powerlab.analysis.best.GOALS`.
        point: the best point.
        metric: its figure.
        energy: what an image takes there in J, of the same provenance; None where that is not known.
        decision: winner, tied, or not enough data.
        statement: the decision in one sentence.
    """

    work: str
    goal: str
    point: Point
    metric: Metric
    energy: Metric | None
    decision: Decision
    statement: str


_decoder = msgspec.msgpack.Decoder(tuple[Answer, ...])


def answers_of(summaries: Sequence[PointSummary], runs: Sequence[Run]) -> tuple[Answer, ...]:
    """Return the answers of a sweep from its points and their runs."""
    return tuple(
        Answer(
            work=work_of(best.summary.point),
            goal=best.goal,
            point=best.summary.point,
            metric=best.metric,
            energy=_of_the_same_provenance(best.summary.metric(_ENERGY), best.metric),
            decision=best.decision,
            statement=best.statement,
        )
        for best in best_points(summaries, runs)
    )


def _of_the_same_provenance(energy: Metric | None, metric: Metric) -> Metric | None:
    return energy if energy is not None and energy.provenance is metric.provenance else None


def packed_answers(answers: Sequence[Answer]) -> bytes:
    """Return answers as compressed MessagePack."""
    return zlib.compress(msgspec.msgpack.encode(answers))


def stored_answers(session: Session, sweep_ids: Sequence[str]) -> Mapping[str, tuple[Answer, ...]]:
    """Return the stored answers of sweeps by their ids; one whose answers are not worked out yet is left out."""
    wanted = select(SweepSummaryRow.sweep_id, SweepSummaryRow.answers).where(
        SweepSummaryRow.sweep_id.in_(sweep_ids), SweepSummaryRow.method == METHOD
    )
    return {
        sweep_id: _decoder.decode(zlib.decompress(packed))
        for sweep_id, packed in session.execute(wanted)
        if packed is not None
    }
