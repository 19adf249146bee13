"""What a running simulated board says of itself, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot

PATIENCE_S = 30.0


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


def true_energy(board: Sysroot) -> tuple[int, float]:
    """The simulator's own word: a moment and the energy of the total up to it, in J."""
    moment, microjoules = board.read(layout.ENERGY_FILE).split()
    return int(moment), int(microjoules) * 1e-6
