from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.boards.simulator import create_tree
from powerlab.sysroot import Sysroot


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    """A simulated AGX Xavier without a simulator process."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    return Sysroot(tmp_path / "board")
