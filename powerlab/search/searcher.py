"""Names the next run of an adaptive sweep, and says when none is worth making."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powerlab.analysis.best import work_of
from powerlab.analysis.summary import searched_figures
from powerlab.domain.order import Done
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.search.contest import SIGNS, Places, contest, leader_of, promise
from powerlab.search.knowledge import Knowledge
from powerlab.search.prior import basis, prior_of
from powerlab.search.space import Space

DOUBT = 0.05
"""A search ends when all other points together are less likely than this to hold a better one."""
_LEAST_GAIN = 1e-12


@dataclass(slots=True, kw_only=True)
class Searcher:
    """One search.

    Attributes:
        space: the points that may be measured.
        goals: what to find the best of, keys of :data:`powerlab.search.contest.SIGNS`.
        repeats: runs of a point at most, and of those that the answer compares.
        epsilon: what counts as better, as a share.
        visit_cost: what changing the power mode costs, in runs.
        seed: decides between equals.
        done: runs that were made before, with the figures that are known of them.
        named: power modes whose best points are repeated like those that the answer compares, so that it can say what
            other modes gain on them.
        settled: whether :meth:`next` has found that no other point can be better.
    """

    space: Space
    goals: Sequence[str]
    repeats: int
    epsilon: float
    visit_cost: float = 0.0
    seed: int = 0
    done: Done = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    settled: bool = False
    known: Knowledge = field(init=False)
    _ties: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.known = Knowledge(space=self.space)
        dice = random.Random(self.seed)  # noqa: S311  an order to repeat, not a secret
        self._ties = np.array([1 + 1e-6 * dice.random() for _ in self.space.points])
        for (key, repeat), figures in self.done.items():
            place = self.known.place(key)
            if place is not None:
                self.known.recall(place, repeat, figures)

    def note(self, run: Run) -> None:
        """Learn from a finished run."""
        place = self.known.place(run.point.id)
        if place is not None:
            self.known.note(place, run.repeat, searched_figures(run))

    def next(self, mode: str | None = None) -> tuple[Point, int] | None:
        """Return the next run's point and repeat; None where no further run is worth making.

        Args:
            mode: the power mode that is set now; None where none is.
        """
        place = self._next(mode)
        if place is None:
            return None
        taken = self.known.made.get(place, set())
        return self.space.points[place], next(repeat for repeat in range(self.repeats) if repeat not in taken)

    def leaders(self) -> dict[tuple[str, str], Point]:
        """Return, by work and goal, the best of the measured points as the model sees it."""
        found: dict[tuple[str, str], Point] = {}
        for work, goal in self.known.pairs(self.goals):
            surfaces, measured = self.known.surfaces(goal), self.known.measured(work, goal)
            if surfaces is not None and measured.size:
                place = leader_of(goal, measured, surfaces)
                found[work_of(self.space.points[place]), goal] = self.space.points[place]
        return found

    def _next(self, mode: str | None) -> int | None:
        can = self.known.open(self.repeats)
        self.settled = False
        if not can.any():
            return None
        gain = np.zeros(len(can))
        for work, goal in self.known.pairs(self.goals):
            surfaces, measured = self.known.surfaces(goal), self.known.measured(work, goal)
            there = work[can[work]]
            if not there.size:
                continue
            if surfaces is None:
                return self._most(there, self._expected(goal), mode)
            if not measured.size:
                return self._most(there, promise(goal, surfaces), mode)
            found = contest(goal, work, measured, surfaces, self.epsilon)
            if (found.chance * can[work]).sum() > DOUBT:
                gain[work] += found.gain
        gain *= can
        if gain.max() > _LEAST_GAIN:
            return int(np.argmax(gain * self._ties / self._costs(mode)))
        self.settled = True
        return self._to_confirm(can, mode)

    def _most(self, places: Places, figure: NDArray[np.float64], mode: str | None) -> int:
        """Return the place of the largest figure, in the present power mode where that makes no difference."""
        return int(places[np.argmax((np.exp(figure - figure[places].max()) * self._ties / self._costs(mode))[places])])

    def _expected(self, goal: str) -> NDArray[np.float64]:
        """Return what is expected of the points before anything is measured."""
        columns = basis(self.space.numbers)
        terms = (
            sign * columns @ prior_of(name, self.space.names, self.space.on_gpu).mean
            for name, sign in SIGNS[goal].items()
        )
        return sum(terms, np.zeros(len(columns)))

    def _costs(self, mode: str | None) -> NDArray[np.float64]:
        return np.array([1.0 if point.mode == mode else 1.0 + self.visit_cost for point in self.space.points])

    def _to_confirm(self, can: NDArray[np.bool_], mode: str | None) -> int | None:
        """Return a point that the answer compares and that has fewer runs than it should; the most known first."""
        compared = {place for goal in SIGNS for place in self.known.best_two(goal)}
        if self.named:
            compared |= {place for goal in SIGNS for place in self.known.best_two(goal, self.named)}
        places = [place for place in compared if can[place]]
        if not places:
            return None
        return min(places, key=lambda at: (self.space.points[at].mode != mode, -self.known.count(at), at))
