"""The order of a plan's runs: shuffled by its seed, in blocks.

A randomised block design (Fisher, The Design of Experiments, 1935): every block holds every point once, so that slow
changes, as of temperature, fall on all points alike. Inside a block the points of one power mode stay together, so
that modes are not switched needlessly; the modes' order and the points' order within a mode are shuffled.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from powerlab.domain.mode import Setting
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point, SweepPlan

Key = tuple[str, int]
"""A run of a sweep: the point's id and the repeat's number."""
Done = Mapping[Key, Mapping[str, float]]
"""Runs of a sweep made before, with the figures that a search learns from (:data:`powerlab.domain.sweep.SEARCHED`);
without figures where a run has none, or where they are not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeVisit:
    """A stay in one power mode: the points run there, one repeat each."""

    mode: str
    repeat: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Modes of a plan that can be set one after the other within one boot of the device.

    Attributes:
        modes: their names.
        reboot_into: the setting that has to be in force for them and takes a reboot; None where none is needed.
    """

    modes: tuple[str, ...]
    reboot_into: Setting | None = None


def visits_again(
    plan: SweepPlan, points: Sequence[Point], repeat: int, done: Collection[Key] = ()
) -> tuple[ModeVisit, ...]:
    """Return one more block, of some of the plan's points, shuffled by the seed and the repeat's number."""
    shuffler = random.Random(f"{plan.seed} {repeat}")  # noqa: S311  an order to repeat, not a secret
    return tuple(_block(plan, shuffler, points, repeat, done))


def visits(plan: SweepPlan, done: Collection[Key] = ()) -> tuple[ModeVisit, ...]:
    """Return the plan's runs in order; the same seed gives the same order, and runs in ``done`` are left out."""
    shuffler = random.Random(plan.seed)  # noqa: S311  an order to repeat, not a secret
    points = plan.points()
    blocks = (_block(plan, shuffler, points, repeat, done) for repeat in range(plan.repeats))
    return tuple(visit for block in blocks for visit in block)


def in_plan_order(runs: list[Run], plan: SweepPlan) -> None:
    """Sort runs, which were measured in shuffled order, as the plan lists them."""
    place = {point.id: index for index, point in enumerate(plan.points())}
    runs.sort(key=lambda run: (place[run.point.id], run.repeat))


def _block(
    plan: SweepPlan, shuffler: random.Random, points: Sequence[Point], repeat: int, done: Collection[Key]
) -> Iterator[ModeVisit]:
    for mode in shuffler.sample(plan.modes, len(plan.modes)):
        in_mode = [point for point in points if point.mode == mode]
        shuffled = shuffler.sample(in_mode, len(in_mode))
        left = tuple(point for point in shuffled if (point.id, repeat) not in done)
        if left:
            yield ModeVisit(mode=mode, repeat=repeat, points=left)
