"""Answers for several devices: points of different devices are never ranked together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from powerlab.analysis.operating_point.answer import operating_points
from powerlab.analysis.operating_point.question import Question
from powerlab.analysis.operating_point.records import Answer
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

MOST_RUNS = 5000
"""Runs that one answer is worked out from, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSweep:
    """A stored sweep: its device, and those of its runs that count.

    Attributes:
        sweep_id: its identifier.
        device_id: the device's.
        device_name: what people call the device.
        simulated: whether that is a simulated board.
        runs: those that count.
        aside: of a search, what :func:`powerlab.analysis.searched.set_aside` says.
    """

    sweep_id: str
    device_id: str
    device_name: str
    simulated: bool
    runs: tuple[Run, ...]
    aside: Mapping[str, frozenset[Point]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAnswer:
    """The operating points of one device.

    Attributes:
        device_name: the device.
        simulated: whether it is a simulated board.
        sweep_ids: the sweeps whose runs were used.
        run_count: how many runs they have, whatever their verdict.
        answers: one for each kind of work and provenance; none where nothing can be recommended.
        problem: why not, in a sentence; empty where there are answers.
    """

    device_name: str
    simulated: bool
    sweep_ids: tuple[str, ...]
    run_count: int
    answers: tuple[Answer, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoints:
    """The operating points of every device that has some of the runs."""

    items: tuple[DeviceAnswer, ...]


def of_devices(sweeps: Iterable[MeasuredSweep], question: Question) -> OperatingPoints:
    """Return the operating points of each device that measured one of the sweeps.

    Raises:
        PowerlabError: no device has a point that can be recommended, with the reason.
    """
    by_device: dict[str, list[MeasuredSweep]] = {}
    for sweep in sweeps:
        by_device.setdefault(sweep.device_id, []).append(sweep)
    found = tuple(_of_device(alike, question) for alike in by_device.values())
    if any(one.answers for one in found):
        return OperatingPoints(items=found)
    if len(found) == 1:
        raise PowerlabError(found[0].problem)
    raise PowerlabError("; ".join(f"{one.device_name}: {one.problem.rstrip('.')}" for one in found) + ".")


def check_run_count(count: int, what: str) -> None:
    """Refuse more runs than an answer is worked out from.

    Raises:
        PowerlabError: there are too many.
    """
    if count > MOST_RUNS:
        raise PowerlabError(
            f"{what} has {count} stored runs, and one answer is worked out from {MOST_RUNS} at most; name a device, or "
            "one sweep."
        )


def _of_device(sweeps: list[MeasuredSweep], question: Question) -> DeviceAnswer:
    runs = [run for sweep in sweeps for run in sweep.runs]
    answers: tuple[Answer, ...] = ()
    problem = ""
    try:
        answers = operating_points(runs, question, _aside(sweeps))
    except PowerlabError as error:
        problem = str(error)
    return DeviceAnswer(
        device_name=sweeps[0].device_name,
        simulated=sweeps[0].simulated,
        sweep_ids=tuple(sweep.sweep_id for sweep in sweeps),
        run_count=len(runs),
        answers=answers,
        problem=problem,
    )


def _aside(sweeps: Iterable[MeasuredSweep]) -> dict[str, frozenset[Point]]:
    """Return, by goal, the points that searches set aside and that no other sweep measured as often as it planned."""
    found: dict[str, frozenset[Point]] = {}
    seen = list(sweeps)
    for goal in {goal for sweep in seen for goal in sweep.aside}:
        left = frozenset[Point]().union(*(sweep.aside.get(goal, frozenset()) for sweep in seen))
        found[goal] = left - {
            run.point for sweep in seen for run in sweep.runs if run.point not in sweep.aside.get(goal, frozenset())
        }
    return found
