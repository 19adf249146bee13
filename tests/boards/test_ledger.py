from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.ledger import Ledger, energy_line, rail_lines, total_rails
from powerlab.boards.simulator.loop import Simulator
from powerlab.sysroot import Sysroot

NS = 1_000_000_000
JOULES = st.floats(0.0, 1e9)


@given(st.integers(0, 2**62), JOULES)
def test_the_line_has_one_width_and_gives_back_what_it_says(now_ns: int, energy_j: float) -> None:
    line = energy_line(now_ns, energy_j)
    assert len(line) == 41
    assert [int(word) for word in line.split()] == [now_ns, round(energy_j * 1e6)]


@given(st.dictionaries(st.sampled_from(["VDD_IN", "CPU power", "package-0"]), JOULES, min_size=1))
def test_each_rail_has_a_line_with_its_name_behind_the_figure(energy_j: dict[str, float]) -> None:
    lines = [line.split(maxsplit=1) for line in rail_lines(energy_j).splitlines()]
    assert {rail: int(energy_uj) for energy_uj, rail in lines} == {
        rail: round(joules * 1e6) for rail, joules in energy_j.items()
    }


@pytest.mark.parametrize("name", [board.name for board in BOARDS.values() if board.simulatable])
def test_the_true_total_is_made_of_rails_the_board_has(name: str) -> None:
    rails = total_rails(layout.simulation_of(name), BOARDS[name])
    assert rails
    assert set(rails) <= set(layout.simulation_of(name)["rails"])
    assert len(set(rails)) == len(rails)


def test_a_rail_inside_another_is_not_counted_twice(tmp_path: Path) -> None:
    simulation = {"rails": {"VDD_IN": {}, "CPU": {}}, "total": ["VDD_IN"]}
    for path in (layout.ENERGY_FILE, layout.RAIL_ENERGY_FILE):
        (tmp_path / path.lstrip("/")).parent.mkdir(exist_ok=True)
        (tmp_path / path.lstrip("/")).write_text("")
    ledger = Ledger(Sysroot(tmp_path), simulation, BOARDS["generic"])
    assert ledger.add(5 * NS, {"VDD_IN": 10.0, "CPU": 4.0}) == 0.0
    assert ledger.add(7 * NS, {"VDD_IN": 10.0, "CPU": 4.0}) == 2.0
    ledger.close()
    assert (tmp_path / "simulation/energy").read_text().split() == [str(7 * NS), "20000000"]
    assert ledger.energy_j == {"VDD_IN": 20.0, "CPU": 8.0}


def test_the_rails_energies_of_a_board_add_up_to_its_total(board: Sysroot) -> None:
    simulator = Simulator(board)
    for tick in range(50):
        simulator.tick(tick * 10_000_000)
    simulator.close()
    rails_uj = [int(line.split()[0]) for line in board.read(layout.RAIL_ENERGY_FILE).splitlines()]
    total_uj = int(board.read(layout.ENERGY_FILE).split()[1])
    assert sum(rails_uj) == pytest.approx(total_uj, abs=len(rails_uj))
    assert total_uj > 0
