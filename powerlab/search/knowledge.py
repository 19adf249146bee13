"""What the runs of a search have told so far: figures, failures, and the surfaces fitted to them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from powerlab.analysis.best import work_of
from powerlab.domain.sweep import SEARCHED
from powerlab.search.contest import SIGNS, Places
from powerlab.search.space import Space
from powerlab.search.surface import Surface

_TRIES = 2
"""A point that failed so often is given up."""
_TRIES_OF_A_GOAL = 3
"""A work whose first runs all lack a figure will not get it."""


@dataclass(slots=True, kw_only=True)
class Knowledge:
    """What is known of the points of a space.

    Attributes:
        space: the points.
        made: the repeats that each point has, by its place.
    """

    space: Space
    made: dict[int, set[int]] = field(default_factory=dict)
    works: list[Places] = field(init=False)
    _places: dict[str, int] = field(init=False)
    _failures: Counter[int] = field(default_factory=Counter)
    _given_up: set[int] = field(default_factory=set)
    _figures: dict[str, list[tuple[int, float]]] = field(init=False)
    _fitted: dict[str, tuple[int, Surface]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._places = self.space.index()
        self._figures = {name: [] for name in SEARCHED}
        works: dict[str, list[int]] = {}
        for place, point in enumerate(self.space.points):
            works.setdefault(work_of(point), []).append(place)
        self.works = [np.array(places, dtype=np.int64) for places in works.values()]

    def place(self, point_id: str) -> int | None:
        """Return where a point is in the space; None where it is not there."""
        return self._places.get(point_id)

    def note(self, place: int, repeat: int, figures: Mapping[str, float]) -> None:
        """Learn from a run of a point that was made: its figures, and that it failed where it has none."""
        self.recall(place, repeat, figures)
        if not figures:
            self._failed(place)

    def recall(self, place: int, repeat: int, figures: Mapping[str, float]) -> None:
        """Learn from a run that was made before; whether one without figures failed is not known."""
        self.made.setdefault(place, set()).add(repeat)
        for name in SEARCHED:
            if figures.get(name, 0.0) > 0:
                self._figures[name].append((place, math.log(figures[name])))

    def give_up(self, mode: str) -> None:
        """Leave out what is left of a power mode."""
        self._given_up |= {at for at, point in enumerate(self.space.points) if point.mode == mode}

    def _failed(self, place: int) -> None:
        self._failures[place] += 1
        if self._failures[place] >= _TRIES:
            self._given_up.add(place)

    def count(self, place: int) -> int:
        """Return how many runs a point has."""
        return len(self.made.get(place, ()))

    def open(self, repeats: int) -> NDArray[np.bool_]:
        """Return which points may be run once more: those that have fewer runs, and do not keep failing."""
        places = range(len(self.space.points))
        return np.array([self.count(at) < repeats and at not in self._given_up for at in places], dtype=bool)

    def pairs(self, goals: Iterable[str]) -> Iterator[tuple[Places, str]]:
        """Yield every work with every goal that its runs have figures for, as far as anybody can tell yet."""
        wanted = tuple(goals)
        for work in self.works:
            tried = sum(self.count(int(place)) for place in work)
            for goal in wanted:
                if tried < _TRIES_OF_A_GOAL or self.measured(work, goal).size:
                    yield work, goal

    def measured(self, work: Places, goal: str) -> Places:
        """Return the points of a work with a figure of every quantity that a goal needs."""
        by_quantity = [{place for place, _ in self._figures[name]} for name in SIGNS[goal]]
        both = set.intersection(*by_quantity)
        return np.array([place for place in work if int(place) in both], dtype=np.int64)

    def best_two(self, goal: str, modes: Collection[str] = ()) -> set[int]:
        """Return each work's best point of a goal and the next best by the medians of their runs.

        Args:
            goal: a key of :data:`powerlab.search.contest.SIGNS`.
            modes: only points of these power modes; empty is all.
        """
        found: set[int] = set()
        for work in self.works:
            there = [int(at) for at in self.measured(work, goal) if not modes or self.space.points[at].mode in modes]
            found |= set(sorted(there, key=lambda at: -self._median(at, goal))[:2])
        return found

    def _median(self, place: int, goal: str) -> float:
        return sum(
            sign * median(value for at, value in self._figures[name] if at == place)
            for name, sign in SIGNS[goal].items()
        )

    def surfaces(self, goal: str) -> dict[str, Surface] | None:
        """Return the surfaces a goal needs, fitted to all runs so far; None where one has no run."""
        names = SIGNS[goal]
        return {name: self._surface(name) for name in names} if all(self._figures[name] for name in names) else None

    def _surface(self, name: str) -> Surface:
        count, known = len(self._figures[name]), self._fitted.get(name)
        if known is None or known[0] != count:
            places, values = zip(*self._figures[name], strict=True)
            known = self._fitted[name] = (count, Surface(self.space, name, places, values))
        return known[1]
