"""The simulated GPU and memory clocks follow what is set, pinned and running."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jetsons import IDS, JETSONS
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.load import Load
from powerlab.boards.simulator.loop import Simulator
from powerlab.sysroot import Sysroot

EVERY = pytest.mark.parametrize(("name", "jetpack"), JETSONS, ids=IDS)
TICK_NS = 10_000_000


class Bench:
    """A board with its simulator, ticked by hand."""

    def __init__(self, board: Sysroot) -> None:
        self.board, self.simulator, self.now_ns = board, Simulator(board), 0

    def run(self, ticks: int = 6) -> dict[str, float]:
        watts: dict[str, float] = {}
        for _ in range(ticks):
            self.now_ns += TICK_NS
            watts = dict(self.simulator.tick(self.now_ns))
        return watts

    def put(self, path: str, value: object) -> None:
        layout.rewrite(self.board.path(path), str(value))

    def read(self, path: str) -> int:
        return int(self.board.read(path))


@contextmanager
def bench(name: str, jetpack: int, directory: Path) -> Iterator[Bench]:
    create_tree(name, directory / "tree", jetpack)
    found = Bench(Sysroot(directory / "tree"))
    yield found
    found.simulator.close()


def gpu_of(board: Sysroot) -> str:
    (gpu,) = board.glob("/sys/class/devfreq/*")
    return gpu


@EVERY
def test_the_gpu_is_found_by_class_and_under_its_old_name(name: str, jetpack: int, tmp_path: Path) -> None:
    with bench(name, jetpack, tmp_path) as at:
        clocks = [int(clock) for clock in at.board.read(f"{gpu_of(at.board)}/available_frequencies").split()]
        assert clocks == sorted(clocks)
        assert at.read(f"{gpu_of(at.board)}/min_freq") >= clocks[0]
        assert at.read(f"{gpu_of(at.board)}/max_freq") in clocks
        device = at.board.path("/sys/devices/gpu.0").resolve()
        assert at.board.path(gpu_of(at.board)).resolve().is_relative_to(device)


@EVERY
def test_an_idle_gpu_runs_at_its_lower_limit(name: str, jetpack: int, tmp_path: Path) -> None:
    with bench(name, jetpack, tmp_path) as at:
        gpu = gpu_of(at.board)
        top_hz = at.read(f"{gpu}/max_freq")
        at.put(f"{gpu}/min_freq", top_hz)
        at.run()
        assert at.read(f"{gpu}/cur_freq") == top_hz


@EVERY
def test_a_gpu_held_lower_draws_less(name: str, jetpack: int, tmp_path: Path) -> None:
    with bench(name, jetpack, tmp_path) as at:
        gpu = gpu_of(at.board)
        before_w = at.run()
        at.put(f"{gpu}/max_freq", at.read(f"{gpu}/min_freq"))
        after_w = at.run()
        assert sum(after_w.values()) < sum(before_w.values())
        assert all(after_w[rail] <= watts for rail, watts in before_w.items())


@EVERY
def test_the_memory_rests_when_nothing_runs_unless_it_is_pinned(name: str, jetpack: int, tmp_path: Path) -> None:
    table = layout.simulation_of(name)["emc"]
    with bench(name, jetpack, tmp_path) as at:
        at.run()
        resting_hz = at.read(table["rate"])
        with Load(at.board) as load:
            load.publish(2)
            at.run()
            busy_hz = at.read(table["rate"])
            busy_w = at.run()
        assert resting_hz < busy_hz
        idle_w = at.run()
        at.put(table.get("set", table["rate"]), busy_hz)
        at.put(table["lock"], 1)
        pinned_w = at.run()
        assert at.read(table["rate"]) == busy_hz
        assert sum(idle_w.values()) < sum(pinned_w.values()) < sum(busy_w.values())


@EVERY
def test_a_lower_cap_of_the_memory_is_kept(name: str, jetpack: int, tmp_path: Path) -> None:
    table = layout.simulation_of(name)["emc"]
    with bench(name, jetpack, tmp_path) as at, Load(at.board) as load:
        load.publish(2)
        free_w = at.run()
        at.put(table["cap"], 665_600_000)
        capped_w = at.run()
        assert at.read(table["rate"]) == 665_600_000
        assert sum(capped_w.values()) < sum(free_w.values())
