"""The strategies that ``compare.py`` compares. Each is told what a run measured, and names the next point to run.

All of them recommend, after each run, the point they would have taken as the best: the search its model's best, the
others the best mean of a point's runs.
"""

from __future__ import annotations

import math
import random
import uuid
from collections.abc import Callable
from typing import Protocol

from bench.search.grids import GOALS, REPEATS, Figures, Grid, of_goal
from powerlab.analysis.best import best_points
from powerlab.analysis.summary import summarise
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.search.searcher import Searcher
from powerlab.search.space import space_of

EPSILON = 0.01
VISIT_COST = 0.25


class Strategy(Protocol):
    """One search."""

    def next(self) -> Point | None:
        """Name the point to run; None to stop."""
        ...

    def note(self, point: Point, figures: Figures) -> None:
        """Learn what a run measured."""
        ...

    def answers(self) -> dict[str, Point]:
        """Name, by goal, the best point so far."""
        ...


class Means:
    """The best mean of a point's runs."""

    def __init__(self, goal: str) -> None:
        self._goal = goal
        self._seen: dict[Point, list[float]] = {}

    def note(self, point: Point, figures: Figures) -> None:
        self._seen.setdefault(point, []).append(of_goal(figures, self._goal))

    def mean(self, point: Point) -> float:
        return sum(self._seen[point]) / len(self._seen[point])

    def answers(self) -> dict[str, Point]:
        return {self._goal: max(self._seen, key=self.mean)} if self._seen else {}


class Ours:
    """powerlab's own search."""

    def __init__(self, grid: Grid, goal: str, seed: int) -> None:
        space = space_of(grid.points, grid.vendor, grid.core_count)
        goals = GOALS if goal == "all" else (goal,)
        self.searcher = Searcher(
            space=space, goals=goals, repeats=REPEATS, epsilon=EPSILON, visit_cost=VISIT_COST, seed=seed
        )
        self._mode: str | None = None
        self._repeat = 0
        self._ended = False
        self._runs: list[Run] = []

    def next(self) -> Point | None:
        pick = self.searcher.next(self._mode)
        if pick is None:
            self._ended = True
            return None
        point, self._repeat = pick
        self._mode = point.mode
        return point

    def note(self, point: Point, figures: Figures) -> None:
        metrics = tuple(
            Metric(name=name, value=value, provenance=Provenance.SIMULATED) for name, value in figures.items()
        )
        throughput, power_w = figures["throughput_img_per_s"], figures["power_w"]
        efficiency = Metric(
            name="efficiency_img_per_s_per_w", value=throughput / power_w, provenance=Provenance.SIMULATED
        )
        run = Run(
            id=str(uuid.UUID(int=len(self._runs))),
            sweep_id="s",
            point=point,
            repeat=self._repeat,
            started_at="",
            window_ns=(0, 1),
            inference_count=1,
            verdict=Verdict.VALID,
            findings=(),
            metrics=(*metrics, efficiency),
            total=None,
        )
        self.searcher.note(run)
        self._runs.append(run)

    def answers(self) -> dict[str, Point]:
        if not self._ended:
            return {goal: point for (_, goal), point in self.searcher.leaders().items()}
        whole = [one for one in summarise(self._runs) if one.run_count == REPEATS]
        return {best.goal: best.summary.point for best in best_points(whole)}


class Oracle:
    """Told all that a run does not hide: which points are within the grid's scatter of the best of a goal.

    It runs these alone, in blocks that are shuffled, and recommends the best mean: what a search would take whose model
    was perfect but for that.
    """

    def __init__(self, grid: Grid, goal: str, seed: int) -> None:
        self._dice = random.Random(seed)
        self._means = {one: Means(one) for one in (GOALS if goal == "all" else (goal,))}
        self._near = {
            one: {point for point in grid.points if grid.goal(point, one) >= (1 - grid.scatter) * grid.best(one)}
            for one in self._means
        }
        self._points = [point for point in grid.points if any(point in near for near in self._near.values())]
        self._left = REPEATS
        self._todo: list[Point] = []

    def next(self) -> Point | None:
        if not self._todo:
            if not self._left:
                return None
            self._left -= 1
            self._todo = self._dice.sample(self._points, len(self._points))
        return self._todo.pop()

    def note(self, point: Point, figures: Figures) -> None:
        for goal, means in self._means.items():
            if point in self._near[goal]:
                means.note(point, figures)

    def answers(self) -> dict[str, Point]:
        return {goal: point for means in self._means.values() for goal, point in means.answers().items()}


class RandomSearch(Means):
    """Points in random order."""

    def __init__(self, grid: Grid, goal: str, seed: int) -> None:
        super().__init__(goal)
        self._order = random.Random(seed).sample(grid.points, len(grid.points))

    def next(self) -> Point | None:
        return self._order.pop() if self._order else None


class Halving(Means):
    """Successive halving (Karnin, Koren & Somekh, ICML 2013): everything once, the better half again, and so on."""

    def __init__(self, grid: Grid, goal: str, seed: int) -> None:
        super().__init__(goal)
        self._dice = random.Random(seed)
        self._round = self._dice.sample(grid.points, len(grid.points))
        self._todo = list(self._round)

    def next(self) -> Point | None:
        if not self._todo:
            if len(self._round) == 1:
                return None
            ranked = sorted(self._round, key=self.mean, reverse=True)
            self._round = ranked[: math.ceil(len(ranked) / 2)]
            self._todo = self._dice.sample(self._round, len(self._round))
        return self._todo.pop()


class Optuna(Means):
    """A sampler of Optuna: threads, batch, slices and spin as their places in ascending order, the rest as categories.

    A suggestion that is no point of the grid (more threads than a mode has cores) is told as infeasible, and costs no
    run.
    """

    def __init__(self, grid: Grid, goal: str, seed: int, sampler: str) -> None:
        import optuna

        super().__init__(goal)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        made = optuna.samplers.TPESampler(seed=seed) if sampler == "tpe" else optuna.samplers.GPSampler(seed=seed)
        self._study = optuna.create_study(direction="maximize", sampler=made)
        self._by_values = {_values(point): point for point in grid.points}
        columns = list(zip(*self._by_values, strict=True))
        self._ordered = [sorted(set(column)) if index < 4 else None for index, column in enumerate(columns)]
        self._categories = [sorted(set(column)) for column in columns]
        self._trial = None

    def next(self) -> Point | None:
        import optuna

        while True:
            self._trial = self._study.ask()
            values = []
            for index, choices in enumerate(self._categories):
                name = f"d{index}"
                if len(choices) == 1:
                    values.append(choices[0])
                elif self._ordered[index] is not None:
                    values.append(choices[self._trial.suggest_int(name, 0, len(choices) - 1)])
                else:
                    values.append(self._trial.suggest_categorical(name, choices))
            point = self._by_values.get(tuple(values))
            if point is not None:
                return point
            self._study.tell(self._trial, state=optuna.trial.TrialState.FAIL)

    def note(self, point: Point, figures: Figures) -> None:
        super().note(point, figures)
        self._study.tell(self._trial, math.log(of_goal(figures, self._goal)))


def _values(point: Point) -> tuple[int | str, ...]:
    spin_us = -1 if point.spin_us is None else point.spin_us
    load = point.workload
    return point.threads, load.batch_size, load.slices, spin_us, point.mode, load.engine


STRATEGIES: dict[str, Callable[[Grid, str, int], Strategy]] = {
    "powerlab": Ours,
    "oracle": Oracle,
    "random": RandomSearch,
    "halving": Halving,
    "TPE": lambda grid, goal, seed: Optuna(grid, goal, seed, "tpe"),
    "GP": lambda grid, goal, seed: Optuna(grid, goal, seed, "gp"),
}
