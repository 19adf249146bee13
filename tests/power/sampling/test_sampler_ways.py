"""The ways that the sampler's benchmark compares: each reads the same six rails, and its figures are honest."""

from __future__ import annotations

import asyncio
import queue
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measuring import sampler_cost, sampler_ways
from powerlab.boards.simulator import create_tree

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 20.0
PERIOD_S = 0.001


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    create_tree("jetson-agx-xavier", tmp_path / "board", 5)
    return tmp_path / "board"


def watts_of(tree: Path) -> list[float]:
    files = sampler_ways.rail_files(tree)
    return [int(volts.read_text()) * int(amperes.read_text()) * 1e-6 for volts, amperes in files]


def sample(way, rounds: int = 3) -> None:
    """Let a way sample for a while, twice: it can be started again."""
    for _ in range(2):
        before = way.rounds
        way.start()
        if way.rounds == before and type(way).__name__ in {"Native", "Waking"}:
            time.sleep(0.02)  # these count when they have ended
        else:
            deadline = time.monotonic() + TIMEOUT_S
            while way.rounds < before + rounds:
                assert time.monotonic() < deadline, "waited in vain"
                time.sleep(0.001)
        way.stop()
        assert way.rounds > before
        stopped = way.rounds
        time.sleep(0.01)
        assert way.rounds == stopped


def test_the_tree_has_six_rails_with_two_files_each(tree) -> None:
    files = sampler_ways.rail_files(tree)
    assert len(files) == len(sampler_ways.RAILS) == 6
    assert all(path.is_file() for pair in files for path in pair)


@pytest.mark.parametrize("name", ["waking up alone", "powerlab", "Python loop", "jtop-like"])
def test_every_way_starts_stops_and_counts_its_rounds(tree, name) -> None:
    sample(sampler_ways.WAYS[name](tree, PERIOD_S))


def test_the_python_loop_reads_the_watts_of_all_rails(tree) -> None:
    loop = sampler_ways.PythonLoop(tree, PERIOD_S)
    loop.once()
    ((_, watts),) = loop._samples
    assert watts == pytest.approx(watts_of(tree))
    assert sum(watts) > 0


def test_the_walk_of_the_chips_finds_the_same_watts_under_their_labels(tree) -> None:
    walk = sampler_ways.JtopLike(tree, PERIOD_S)
    walk.once()
    expected = dict(zip(sampler_ways.RAILS, watts_of(tree), strict=True))
    assert {rail: walk._status[rail]["power"] / 1000 for rail in expected} == pytest.approx(expected)
    assert all({"volt", "curr", "warn", "crit", "avg"} <= set(walk._status[rail]) for rail in expected)


def test_zeus_way_adds_up_energy_and_answers_when_asked(tree) -> None:
    ways = sampler_ways
    commands: queue.Queue[object] = queue.Queue()
    results: queue.Queue[list[float]] = queue.Queue()
    for command in ("read", "read", None):
        commands.put(command)
    # In a thread of its own: a browser's tests may have left an event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(ways._zeus_like(commands, results, ways.rail_files(tree)[:3]))).result()
    first, second = results.get_nowait(), results.get_nowait()
    assert len(first) == ways.ZEUS_RAILS
    assert all(0 <= before <= after for before, after in zip(first, second, strict=True))


@given(st.lists(st.floats(0.5, 2.0), min_size=1, max_size=60))
def test_a_ways_interval_holds_its_median(values) -> None:
    middle, low, high = sampler_cost.interval(values)
    assert min(values) <= low <= middle <= high <= max(values)


def test_the_one_line_command_runs_the_benchmark() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "bench-sampler: ##" in makefile
    assert "-m bench.measuring.sampler_cost" in makefile
