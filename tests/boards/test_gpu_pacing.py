"""Work on a simulated board's graphics card: how long it takes, what it draws, and which boards have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import NO_WORK, create_tree, layout, pacer
from powerlab.boards.simulator.cards import Card, first_card, inference_s
from powerlab.boards.simulator.load import load_now
from powerlab.boards.simulator.loop import Simulator
from powerlab.boards.simulator.physics import Work
from powerlab.boards.simulator.state import BusyGpu
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

WORK = Work(flops=1e11, bytes_moved=1e9)
FULL = BusyGpu(power=1.0, clock=1.0, memory=1.0)


def card_of_board(name: str) -> Card:
    card = first_card(layout.simulation_of(name))
    assert card is not None
    return card


def moved(sysroot: Sysroot, seconds: float = 0.3, start_ns: int = 1_000_000_000) -> dict[str, float]:
    """Move a board's sensors in virtual time, and return what its rails drew at the end."""
    simulator, drawn_w = Simulator(sysroot), {}
    for tick in range(round(seconds / 0.01)):
        drawn_w = dict(simulator.tick(start_ns + tick * 10_000_000))
    simulator.close()
    return drawn_w


@pytest.mark.parametrize(
    "name",
    ["gpu-workstation", "h100-workstation", "amd-gpu-workstation", "mi210-workstation", "intel-gpu-workstation"],
)
def test_a_card_computes_and_the_processor_rests(name: str, tmp_path: Path) -> None:
    create_tree(name, tmp_path / "tree")
    board, card = Sysroot(tmp_path / "tree"), card_of_board(name)
    idle_w = moved(board)
    pace = pacer(board, 1, on_gpu=True)
    assert pace.processor_name == card.name
    assert pace.seconds(WORK) == pytest.approx(inference_s(card, FULL, WORK), rel=0.1)
    with pace.inference(NO_WORK):
        assert load_now(board) == (0, 1.0, 1.0)
        busy_w = moved(board)
    assert load_now(board).gpu == 0.0
    pace.close()
    assert idle_w["GPU0"] == pytest.approx(card.base_w)
    assert 0.8 * card.default_w < busy_w["GPU0"] <= card.default_w
    assert busy_w["package-0"] == pytest.approx(idle_w["package-0"])


@pytest.mark.parametrize(("slower", "share"), [("clock", "flops"), ("memory", "bytes_moved")])
def test_half_the_clock_doubles_its_part_of_the_time(slower: str, share: str) -> None:
    card = card_of_board("h100-workstation")
    work = Work(**{"flops": 0.0, "bytes_moved": 0.0, "calls": 0.0, share: 1e12})
    half = BusyGpu(**{"power": 1.0, "clock": 1.0, "memory": 1.0, slower: 0.5})
    assert inference_s(card, half, work) == pytest.approx(2 * inference_s(card, FULL, work))


def test_a_board_without_a_card_refuses(tmp_path: Path) -> None:
    create_tree("laptop", tmp_path / "tree")
    with pytest.raises(PowerlabError, match="no graphics processor that computes"):
        pacer(Sysroot(tmp_path / "tree"), 1, on_gpu=True)
