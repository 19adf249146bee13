"""A simulated card whose sensor looks a quarter of the time: its counter adds up what it saw, and nothing else."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.nvml import Nvml
from powerlab.sysroot import Sysroot

TICK_S = 0.005
BUSY_W, CALM_W = 200.0, 40.0


def counted_w(tmp_path, *, part_time: bool, busy_from: int) -> float:
    """Return the mean power by the counter's word, of a load that is busy for five of every twenty ticks."""
    table: dict[str, Any] = copy.deepcopy(layout.simulation_of("gpu-workstation")["nvml"])
    table["instant"] = {"update_period_s": 0.1, "averaging_s": 0.025}
    for card in table["cards"]:
        card["part_time"] = part_time
    part, sysroot = Nvml(BOARDS["gpu-workstation"], table, ""), Sysroot(tmp_path)
    for path, text in part.files({}):
        sysroot.path(path).parent.mkdir(parents=True, exist_ok=True)
        sysroot.path(path).write_text(f"{text}\n")
    part.open(sysroot)
    energy_j, path = 0.0, sysroot.path("/simulation/nvml/gpu0/energy_mj")
    begin_mj = int(path.read_text())
    for tick in range(2001):
        drawn_w = BUSY_W if (tick - 1 - busy_from) % 20 < 5 else CALM_W
        energy_j += drawn_w * TICK_S * (tick > 0)
        moment = Moment(
            now_ns=round(tick * TICK_S * 1e9),
            passed_s=TICK_S if tick else 0.0,
            rails_w={"GPU0": drawn_w, "GPU1": drawn_w},
            components_w={},
            energy_j={"GPU0": energy_j, "GPU1": energy_j},
            state=None,  # type: ignore[arg-type]
            settings=None,  # type: ignore[arg-type]
            looked=False,
            warmth_c=40.0,
            noise=random.Random(1),
            faults=frozenset(),
        )
        part.tick(moment)
    part.close()
    return (int(path.read_text()) - begin_mj) / 1000 / (2000 * TICK_S)


TRUE_W = (5 * BUSY_W + 15 * CALM_W) / 20


@pytest.mark.parametrize(("busy_from", "watts"), [(15, BUSY_W), (5, CALM_W)])
def test_a_load_in_step_is_misread_as_the_literature_reports(tmp_path, busy_from, watts):
    assert counted_w(tmp_path, part_time=True, busy_from=busy_from) == pytest.approx(watts, rel=0.02)


def test_a_counter_that_sees_everything_counts_the_truth(tmp_path):
    assert counted_w(tmp_path, part_time=False, busy_from=5) == pytest.approx(TRUE_W, rel=0.02)
