"""The best point under a reader's bounds, what they cost, and the command that applies it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from powerlab.analysis.operating_point.devices import of_devices
from powerlab.analysis.operating_point.records import Answer, BoundCost
from powerlab.analysis.operating_point.words import cost_words
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Metric
from powerlab.domain.sweep import Point
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.measured_sweeps import sweep_measured
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.pages.sweep_asked import Asked
from powerlab_dashboards.places import naming


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """The answer to the picker's question.

    Attributes:
        answers: one for each work, and each provenance of the figures.
        problem: why there is none, in a sentence; empty otherwise.
        command: what applies the best point; empty without one, or where several are meant.
    """

    answers: tuple[Answer, ...] = ()
    problem: str = ""
    command: str = ""


def picked(session: Session, sweep_id: str, asked: Asked, server: str) -> Picked | None:
    """Return the best point under the bounds; None if nobody asked.

    Args:
        session: nothing is written.
        sweep_id: the sweep.
        asked: the goal and the bounds.
        server: this server's URL, which the command names.

    Raises:
        NotFoundError: there is no such sweep.
    """
    if not asked.picks:
        return None
    try:
        found = of_devices([sweep_measured(session, sweep_id)], asked.question()).items[0].answers
    except NotFoundError:
        raise
    except PowerlabError as error:
        return Picked(problem=str(error))
    with_best = [answer for answer in found if answer.best is not None]
    command = apply_command(sweep_id, asked, server) if len(with_best) == 1 else ""
    return Picked(answers=found, command=command)


def apply_command(sweep_id: str, asked: Asked, server: str) -> str:
    """Return what sets the best point's power mode on the device."""
    options = {**({"for": asked.goal} if asked.goal else {}), **asked.bounds}
    words = [f"--{name} {shlex.quote(value)}" for name, value in options.items()]
    return " ".join(["sudo powerlab apply", sweep_id, f"--server {shlex.quote(server)}", *words])


def apply_point_command(sweep_id: str, point_id: str, server: str) -> str:
    """Return what sets the power mode of one point of a sweep."""
    return f"sudo powerlab apply {sweep_id} --server {shlex.quote(server)} --point {point_id}"


def cost_of(cost: BoundCost, among: Iterable[Point]) -> str:
    """Return what a bound costs in a sentence; points are named by the dimensions in which ``among`` differ."""
    if cost.without is None:
        return cost_words(cost, "")
    return cost_words(cost, f"{naming(among)(cost.without.point)}, {figure_of(cost.without.figure)}")


def figure_of(figure: Metric) -> str:
    """Return ``12.3 ±0.4 ms (measured)``."""
    return f"{shown(figure).sentence} ({_(figure.provenance.value)})"
