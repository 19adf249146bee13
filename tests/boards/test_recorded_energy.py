"""What the recorder measures on a running simulated Jetson agrees with the energy it really drew."""

from __future__ import annotations

import math
import time

import pytest

from jetsons import EACH, IDS
from powerlab.boards.registry import find_board
from powerlab.boards.simulator import layout, simulated_board
from powerlab.boards.simulator.load import Load
from powerlab.measure.energy.rail import covers, rail_energy
from powerlab.power.sampling.recorder import Recorder
from powerlab.sysroot import Sysroot

PATIENCE_S = 30.0
WINDOW_NS = 400_000_000
COVERAGE = 2.0


def truth(board: Sysroot) -> tuple[int, float]:
    """The moment in ns and the board's energy so far in J."""
    now_ns, energy_uj = map(int, board.read(layout.ENERGY_FILE).split())
    return now_ns, energy_uj / 1e6


def truth_after(board: Sysroot, time_ns: int) -> tuple[int, float]:
    deadline = time.monotonic() + PATIENCE_S
    while (found := truth(board))[0] <= time_ns:
        assert time.monotonic() < deadline, "the simulator stands still"
        time.sleep(0.005)
    return found


@pytest.mark.parametrize(("name", "jetpack"), EACH, ids=IDS)
@pytest.mark.parametrize("threads", [0, 64], ids=["idle", "busy"])
def test_the_recorder_finds_the_true_energy_within_its_own_uncertainty(name: str, jetpack: int, threads: int) -> None:
    total = find_board(name).total
    assert total is not None
    with simulated_board(name, jetpack) as board, Load(board) as load:
        load.publish(threads)
        truth_after(board, time.monotonic_ns() + 50_000_000)  # the load has arrived by then
        for margin_s in (0.05, 0.5, 5.0):  # a busy machine may read late
            with Recorder(board, total.rails, period_s=0.01) as recorder:
                start_ns, start_j = truth_after(board, time.monotonic_ns() + int(margin_s * 0.4e9))
                end_ns, end_j = truth_after(board, start_ns + WINDOW_NS)
                time.sleep(margin_s)
                traces = recorder.stop()
            if all(covers(trace, start_ns, end_ns) for trace in traces):
                break
    rails = [rail_energy(trace, start_ns, end_ns) for trace in traces]
    measured_j = sum(rail.energy_j for rail in rails)
    uncertainty_j = math.hypot(sum(rail.gain_j for rail in rails), *(rail.independent_j for rail in rails))
    assert end_j - start_j > 0.0
    assert abs(measured_j - (end_j - start_j)) <= COVERAGE * uncertainty_j
    assert uncertainty_j < 0.5 * measured_j
