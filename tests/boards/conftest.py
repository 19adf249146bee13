from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.boards.simulator.loop import Simulator
from powerlab.sysroot import Sysroot


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    """A simulated AGX Xavier without a simulator process."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    return Sysroot(tmp_path / "board")


@pytest.fixture
def simulator(board: Sysroot) -> Iterator[Simulator]:
    """What moves the board's sensors, a tick at a time; a file with a ``board`` of its own gets that one's."""
    simulator = Simulator(board, seed=1)
    yield simulator
    simulator.close()
