"""How many runs a search takes until it has found the true best: powerlab's own beside four others, on known grids.

    make bench-search                                        # everything; SEEDS=3 for a first look
    python -m bench.search.compare --grids laptop,squeezenet --goals efficiency --strategies powerlab,random

A strategy has found the best of a goal when the point that it would recommend is truly within 1 % of it. What it took
counts in per cent of the runs of the full grid, which repeats every point three times. A strategy that has not found it
when LIMIT of the grid's runs are spent counts as that limit. Successive halving begins with a run of every point, a
third of the grid.

A recorded grid's truth is uncertain, and its best point may be so by accident. So the tables state there as well when
the recommended point was one of those that all runs of the recording together cannot tell from the best (`Grid.margin`;
or within 1 %, if that is more): for every strategy alike, beside the strict count.

*oracle* is no way to search: it is told which points are within the grid's scatter of the best, and runs only these
(`search_strategies.Oracle`). What it takes, the scatter of the runs costs everyone.

The first table has the median over seeds, goals and grids with the quartiles; the second has powerlab's own search by
grid, for all three goals at once as `--search` does it, with what it took until it stopped by itself and how far its
answer then was from the truth.

The others optimise one goal at a time, as their interfaces do; so the first table has powerlab's search do that too.
Grids marked * were not looked at while the search was written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when numpy is loaded

from bench.search.grids import BOARDS, GOALS, HELD_BACK, Bench, Grid, grid_names, grid_of
from bench.search.strategies import EPSILON, STRATEGIES
from powerlab.boards.processor import cpu_model
from powerlab.domain.sweep import Point
from powerlab.sysroot import Sysroot

ALL = "all"
LIMIT = 0.4
OURS, ORACLE = "powerlab", "oracle"
_GRIDS: dict[str, Grid] = {}


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one search took.

    Attributes:
        margin: how far the true best may be below the recorded one, in %: the largest of the goals'.
        may_be_best: points of which nothing rules out that they are the best: the most of a goal.
        found: runs until the recommended point was the true best within 1 %, in % of the grid's.
        near: runs until it could not be told from the best by the whole recording, or was within 1 %.
        stopped: runs until the search ended by itself; None where it was not asked to.
        regret: how far the answer is from the best at the end, in %.
        as_good: whether the answers at the end cannot be told from the best, or are within 1 %.
        scatter: how far the repeats of the grid's best points are apart (:attr:`search_grids.Grid.scatter`).
    """

    grid: str
    kind: str
    run_count: int
    scatter: float
    margin: float
    may_be_best: int
    strategy: str
    goal: str
    found: float
    near: float
    stopped: float | None
    regret: float
    as_good: bool


def search(name: str, strategy: str, goal: str, seed: int) -> Result:
    """Let one strategy search one grid."""
    warnings.simplefilter("ignore")
    grid = _GRIDS[name]
    made, bench = STRATEGIES[strategy](grid, goal, seed), Bench(grid, seed)
    goals = GOALS if goal == ALL else (goal,)
    within = dict.fromkeys(goals, EPSILON)
    nearly = {one: max(EPSILON, grid.margin(one)) for one in goals}
    found, near, count = None, None, 0
    while count < grid.run_count and (goal == ALL or (found is None and count < LIMIT * grid.run_count)):
        point = made.next()
        if point is None:
            break
        made.note(point, bench.run(point))
        count += 1
        answers = made.answers()
        if near is None and _all_within(grid, answers, nearly):
            near = count
        if found is None and _all_within(grid, answers, within):
            found = count
    answers = made.answers()  # the last repeats have told
    if near is None and count < grid.run_count and _all_within(grid, answers, nearly):
        near = count
    if found is None and count < grid.run_count and _all_within(grid, answers, within):
        found = count
    return Result(
        grid=name,
        kind=grid.kind,
        run_count=grid.run_count,
        scatter=grid.scatter,
        margin=100 * max(map(grid.margin, goals)),
        may_be_best=max(grid.may_be_best(one, EPSILON) for one in goals),
        strategy=strategy,
        goal=goal,
        found=100 * (LIMIT if found is None else found / grid.run_count),
        near=100 * (LIMIT if near is None else near / grid.run_count),
        stopped=100 * count / grid.run_count if goal == ALL else None,
        regret=max(100 * _regret(grid, answers, one) for one in goals),
        as_good=_all_within(grid, answers, nearly),
    )


def _all_within(grid: Grid, answers: Mapping[str, Point], bounds: Mapping[str, float]) -> bool:
    """Return whether each goal's answer is no further from its best than the goal's bound, a share."""
    return all(_regret(grid, answers, goal) <= bound for goal, bound in bounds.items())


def _regret(grid: Grid, answers: Mapping[str, Point], goal: str) -> float:
    """Return how far an answer is from the best of its goal, as a share; all of it where it is missing."""
    return 1 - grid.goal(answers[goal], goal) / grid.best(goal) if goal in answers else 1.0


def quartiles(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "–"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


def table(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of all tables."""
    single = [one for one in results if one.goal != ALL]
    together = sorted((one for one in results if one.goal == ALL), key=lambda one: (one.kind != "simulated", one.grid))
    if single:
        yield "Runs until the best of one goal is found within 1 %, % of the full grid's: median (quartiles)"
        yield from _by_strategy(single, ("simulated", "recorded"), lambda one: one.found)
        yield ""
        yield "The same until all runs of the recording cannot tell it from the best"
        yield from _by_strategy(single, ("recorded",), lambda one: one.near)
    if any(one.strategy == OURS for one in together):
        yield ""
        yield from _by_grid(together)


def _by_strategy(results: Sequence[Result], kinds: Sequence[str], taken: Callable[[Result], float]) -> Iterator[str]:
    strategies = list(dict.fromkeys(one.strategy for one in results))
    yield f"| grids | goal | {' | '.join(strategies)} |"
    yield f"|---|---|{'---:|' * len(strategies)}"
    for kind, held, goal in product(kinds, (False, True), (*GOALS, "any")):
        here = [
            one
            for one in results
            if one.kind == kind and (one.grid in HELD_BACK) is held and (goal in {"any", one.goal})
        ]
        if here:
            cells = [quartiles([taken(one) for one in here if one.strategy == name]) for name in strategies]
            yield f"| {kind}{', held back' if held else ''} | {goal} | {' | '.join(cells)} |"


def _by_grid(results: Sequence[Result]) -> Iterator[str]:
    yield "powerlab's search for all goals at once: median (quartiles)"
    yield (
        "| grid | runs | repeats apart, % | best known within, % | oracle, % | found, % | not told from the best, % "
        "| stopped, % | answer off by, % | within 1 % | not told from the best |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for name, rows in groupby(results, key=lambda one: one.grid):
        both = list(rows)
        here = [one for one in both if one.strategy == OURS]
        recorded = here[0].kind == "recorded"
        yield (
            f"| {name}{'*' if name in HELD_BACK else ''} | {here[0].run_count} "
            f"| {f'{100 * here[0].scatter:.1f}' if recorded else '–'} "
            f"| {f'{here[0].margin:.1f} ({here[0].may_be_best} points)' if recorded else '–'} "
            f"| {quartiles([one.found for one in both if one.strategy == ORACLE])} "
            f"| {quartiles([one.found for one in here])} "
            f"| {quartiles([one.near for one in here]) if recorded else '–'} "
            f"| {quartiles([one.stopped or 0.0 for one in here])} | {quartiles([one.regret for one in here])} "
            f"| {sum(one.regret <= 100 * EPSILON for one in here)} of {len(here)} "
            f"| {f'{sum(one.as_good for one in here)} of {len(here)}' if recorded else '–'} |"
        )
    for kind in ("simulated", "recorded"):
        here = [one for one in results if one.kind == kind and one.strategy == OURS]
        if here:
            yield (
                f"{kind}: found after {quartiles([one.found for one in here])} %, not told from the best "
                f"after {quartiles([one.near for one in here])} %, stopped after "
                f"{quartiles([one.stopped or 0.0 for one in here])} %; {sum(one.regret <= 1 for one in here)} of "
                f"{len(here)} answers are within 1 % of the truth, {sum(one.as_good for one in here)} cannot be told "
                "from it."
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grids", default="", help="names, separated by commas (default: all)")
    parser.add_argument("--goals", default=",".join((*GOALS, ALL)))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gp-seeds", type=int, default=3, help="seeds of Optuna's GP sampler, which is slow")
    parser.add_argument("--workers", type=int, help="processes (default: one a core)")
    parser.add_argument("--results", metavar="FOLDER", help="write each grid's results there, and skip what is there")
    parser.add_argument("--table", action="store_true", help="only print the tables of what is in that folder")
    args = parser.parse_args()
    folder = None if args.results is None else Path(args.results)
    results: list[Result] = []
    names = () if args.table else tuple(filter(None, args.grids.split(","))) or grid_names()
    for name, strategy in product(names, args.strategies.split(",")):
        kept = None if folder is None else folder / f"{name} {strategy}.json"
        if (kept is not None and kept.exists()) or (strategy == ORACLE and name in BOARDS):
            continue
        if name not in _GRIDS:
            _GRIDS[name] = grid_of(name)
        made = _search_all(name, strategy, args)
        results += made
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps([asdict(one) for one in made]))
    if folder is not None:
        results = [Result(**one) for path in sorted(folder.glob("*.json")) for one in json.loads(path.read_text())]
        results.sort(key=lambda one: list(STRATEGIES).index(one.strategy))
    print(f"{platform.node()}: {cpu_model(Sysroot())}; {args.seeds} seeds ({args.gp_seeds} of Optuna's GP)")
    print(*table(results), sep="\n")


def _search_all(name: str, strategy: str, args: argparse.Namespace) -> list[Result]:
    todo = [
        (name, strategy, goal, seed)
        for goal in args.goals.split(",")
        if goal != ALL or strategy in {OURS, ORACLE}
        for seed in range(min(args.seeds, args.gp_seeds) if strategy == "GP" else args.seeds)
    ]
    with ProcessPoolExecutor(args.workers, mp_context=get_context("fork")) as pool:  # the workers inherit the grid
        return list(pool.map(search, *zip(*todo, strict=True)))


if __name__ == "__main__":
    main()
