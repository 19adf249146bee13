"""Grids whose truth is known, for ``compare.py``: those of simulated boards, and full grids recorded on machines.

A simulated board's truth is its physics (powerlab/boards/simulator/physics.py): the board's tree is written, each power
mode is set with powerlab's own controller, and time and power follow from what the knobs are set to. Nothing runs in
real time. A run scatters around the truth by SCATTER, chosen larger than the 0.2 % that the simulator itself has.

A recorded grid's truth is the median of each point's repeats, and a run draws one of them: without putting it back,
until all have been drawn. Three repeats do not tell which of several good points is the best: :attr:`Grid.scatter` says
how far they are apart, and :meth:`Grid.margin` how far below the recorded best the true best may be.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from statistics import fmean, median

import numpy as np

from powerlab.boards.board import Board
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import Work, create_tree, layout
from powerlab.boards.simulator.physics import PowerModel, components_w, inference_s, rails_w
from powerlab.boards.simulator.state import read_settings
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.worker.simulated_work import inference_work
from powerlab.modes.controller import ModeController
from powerlab.sweep.caps import caps_of
from powerlab.sysroot import Sysroot

RECORDED = Path(__file__).parent / "recorded"
REPEATS = 3
RECORDINGS = 2000
"""How often a recorded grid is drawn anew to see how far its best point may be below another."""
CONFIDENCE = 0.95
SCATTER = {"latency_p50_ms": 0.005, "throughput_img_per_s": 0.005, "power_w": 0.01}
BATCHES = (1, 2, 4, 8)
MODELS = ("resnet18", "mobilenetv2", "squeezenet")
BOARDS = (
    "jetson-agx-xavier", "jetson-nano", "jetson-tx2", "jetson-orin-nx", "laptop", "ampere-altra", "intel-xeon",
    "jetson-agx-orin", "jetson-orin-nano", "jetson-xavier-nx", "gpu-workstation", "apm-xgene", "nvidia-grace",
)  # fmt: skip
HELD_BACK = frozenset(
    {"jetson-agx-orin", "jetson-xavier-nx", "apm-xgene", "nvidia-grace"}
    | {"mobilenetv3", "lstm2", "vit-tiny", "efficientnet-b0", "squeezenet-spin"}
)
"""Not looked at while the search was written."""

Figures = Mapping[str, float]
GOALS = ("latency", "throughput", "efficiency")


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Points with what a run of them measures.

    Attributes:
        name: of the board, or of the recorded file.
        kind: ``simulated`` or ``recorded``.
        truth: by point, the true figures.
        repeats: by point, the runs to draw from; empty where they are drawn from SCATTER.
        vendor: caps of the vendor's modes, as the search is told.
        core_count: cores of the board.
    """

    name: str
    kind: str
    truth: Mapping[Point, Figures]
    repeats: Mapping[Point, tuple[Figures, ...]] = field(default_factory=dict)
    vendor: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    core_count: int = 0
    _best: dict[str, float] = field(default_factory=dict)
    _margin: dict[str, float] = field(default_factory=dict)

    @property
    def scatter(self) -> float:
        """How far REPEATS of a point are apart, as a share of their median: mean of each goal's best three points."""
        found = []
        for goal in GOALS if self.repeats else ():
            for point in sorted(self.truth, key=lambda one: -self.goal(one, goal))[:3]:
                runs = [of_goal(figures, goal) for figures in self.repeats[point]]
                found += [(max(some) - min(some)) / median(some) for some in combinations(runs, REPEATS)]
        return fmean(found) if found else 0.0

    @property
    def points(self) -> tuple[Point, ...]:
        return tuple(self.truth)

    @property
    def run_count(self) -> int:
        return REPEATS * len(self.truth)

    def goal(self, point: Point, goal: str) -> float:
        """Return how good a point truly is; more is better."""
        return of_goal(self.truth[point], goal)

    def best(self, goal: str) -> float:
        """Return how good the best point truly is."""
        if goal not in self._best:
            self._best[goal] = max(self.goal(one, goal) for one in self.truth)
        return self._best[goal]

    def margin(self, goal: str) -> float:
        """Return how far, as a share, the true best point may be below the best of the recording, with CONFIDENCE.

        Points within it are those of which the recording does not rule out that they are the best: subset selection
        (Gupta, On some multiple decision rules, Technometrics 7, 1965). The distance comes from RECORDINGS draws of a
        residual bootstrap (Efron & Tibshirani, An Introduction to the Bootstrap, 1993, chapter 9), so that it supposes
        no normal scatter: every point's figure times the median of three deviations, each drawn from those of all
        points with as many threads. A deviation is a run's logarithm less its point's mean, times √(n / (n - 1)) for
        the mean of its n runs taken off. Of 400 made-up recordings of 20 points each, the true best was within it in 90
        to 97 % where the points differ by steps of 1 or 3 %, and in 73 % where all are alike within 0.1 %: rather too
        narrow than too wide, which counts against every strategy. 0 on a simulated board, whose truth is known.
        """
        if goal not in self._margin:
            self._margin[goal] = self._drawn_margin(goal) if self.repeats else 0.0
        return self._margin[goal]

    def _drawn_margin(self, goal: str) -> float:
        dice = np.random.default_rng(0)
        truth = np.log([self.goal(point, goal) for point in self.points])
        runs = np.log([[of_goal(figures, goal) for figures in self.repeats[point]] for point in self.points])
        off = (runs - runs.mean(axis=1, keepdims=True)) * np.sqrt(runs.shape[1] / (runs.shape[1] - 1))
        threads = np.array([point.threads for point in self.points])
        drawn = np.empty((RECORDINGS, len(self.points), REPEATS))
        for count in set(threads.tolist()):
            alike = threads == count
            drawn[:, alike] = dice.choice(off[alike].ravel(), (RECORDINGS, int(alike.sum()), REPEATS))
        seen = truth + np.median(drawn, axis=2)
        below = seen.max(axis=1) - seen[:, truth.argmax()]
        return float(1 - np.exp(-np.quantile(below, CONFIDENCE)))

    def may_be_best(self, goal: str, within: float) -> int:
        """Return how many points are within the margin of the best, or within a share of it, if that is more."""
        least = (1 - max(within, self.margin(goal))) * self.best(goal)
        return sum(self.goal(point, goal) >= least for point in self.points)


def of_goal(figures: Figures, goal: str) -> float:
    if goal == "latency":
        return 1 / figures["latency_p50_ms"]
    throughput = figures["throughput_img_per_s"]
    return throughput if goal == "throughput" else throughput / figures["power_w"]


class Bench:
    """Makes runs of one grid; the same seed makes the same ones."""

    def __init__(self, grid: Grid, seed: int) -> None:
        self._grid, self._dice = grid, random.Random(seed)
        self._left: dict[Point, list[Figures]] = {}

    def run(self, point: Point) -> dict[str, float]:
        if not self._grid.repeats:
            return {
                name: value * (1 + SCATTER[name] * self._dice.gauss(0, 1))
                for name, value in self._grid.truth[point].items()
            }
        left = self._left.setdefault(point, [])
        if not left:
            left += self._dice.sample(self._grid.repeats[point], len(self._grid.repeats[point]))
        return dict(left.pop())


def grid_names() -> tuple[str, ...]:
    """Return the names of all grids, the boards' first."""
    return (*BOARDS, *sorted(path.stem for path in RECORDED.glob("*.json")))


def grid_of(name: str) -> Grid:
    """Return the grid of that name."""
    if name in BOARDS:
        return simulated(name, MODELS[BOARDS.index(name) % len(MODELS)])
    return recorded(RECORDED / f"{name}.json")


@cache
def _work(model: str, batch: int) -> Work:
    return inference_work(Workload(model=model, batch_size=batch))


def simulated(board_name: str, model: str) -> Grid:
    """Return a board's grid: threads (powers of 2) x batch x every mode that it offers and takes without a reboot."""
    board, simulation = find_board(board_name), layout.simulation_of(board_name)
    physics = PowerModel.from_document(simulation)
    truth: dict[Point, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        create_tree(board_name, Path(folder) / "tree")
        sysroot = Sysroot(Path(folder) / "tree")
        controller = ModeController(sysroot, Path(folder) / "state")
        core_count = len(read_settings(sysroot, simulation).online_cores)
        for mode in controller.modes():
            if mode.requires_reboot:
                continue
            try:
                with controller.applied(mode.name):
                    settings = read_settings(sysroot, simulation)
            except PowerlabError as error:
                raise SystemExit(f"{board_name} {mode.name}: {error}") from error
            for threads in _threads(len(settings.online_cores)):
                state = settings.state(threads)
                power_w = sum(_total(board, rails_w(simulation["rails"], components_w(physics, state))))
                for batch in BATCHES:
                    seconds = inference_s(physics, state, _work(model, batch))
                    point = Point(workload=Workload(model=model, batch_size=batch), threads=threads, mode=mode.name)
                    truth[point] = {
                        "latency_p50_ms": 1e3 * seconds,
                        "throughput_img_per_s": batch / seconds,
                        "power_w": power_w,
                    }
    vendor = {mode.name: caps_of(mode) for mode in board.vendor_modes}
    return Grid(name=board_name, kind="simulated", truth=truth, vendor=vendor, core_count=core_count)


def _threads(cores: int) -> list[int]:
    return sorted({*(2**power for power in range(cores.bit_length()) if 2**power <= cores), cores})


def _total(board: Board, rails: Mapping[str, float]) -> Iterator[float]:
    """Yield the rails that add up to the board's power; all of them where nothing is stated."""
    wanted = None if board.total is None else [key.partition(":")[2].rstrip("*") for key in board.total.rails]
    found = [watts for rail, watts in rails.items() if wanted is None or any(rail.startswith(one) for one in wanted)]
    yield from found or rails.values()


def recorded(path: Path) -> Grid:
    """Return a grid that bench/search/record_grid.py has written."""
    document = json.loads(path.read_text())
    repeats: dict[Point, list[Figures]] = {}
    for row in document["rows"]:
        cell = dict(zip(document["columns"], row, strict=True))
        load = Workload(model=document["model"], engine=cell["engine"], batch_size=cell["batch"], slices=cell["slices"])
        point = Point(workload=load, threads=cell["threads"], mode="current", spin_us=cell["spin_us"])
        repeats.setdefault(point, []).append({name: cell[name] for name in SCATTER})
    truth = {point: {name: median(run[name] for run in runs) for name in SCATTER} for point, runs in repeats.items()}
    return Grid(
        name=path.stem, kind="recorded", truth=truth, repeats={point: tuple(runs) for point, runs in repeats.items()}
    )
