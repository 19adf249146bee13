from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree, layout
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.ina3221 import Ina3221, Reading, quantised
from powerlab.boards.simulator.sensor import Sensor
from powerlab.boards.simulator.state import Settings
from powerlab.sysroot import Sysroot


@given(st.floats(0.0, 60.0), st.sampled_from([1000, 2000, 4000, 5000, 10000]), st.integers(4000, 20000))
def test_a_reading_is_a_whole_number_of_the_chips_steps(drawn_w: float, shunt_uohm: int, supply_mv: int) -> None:
    reading = quantised(drawn_w, supply_mv, shunt_uohm)
    step_ma = 40_000 / shunt_uohm
    assert reading.voltage_mv % 8 == 0
    assert reading.current_ma % step_ma == 0
    half_a_step_w = step_ma * reading.voltage_mv / 2e6
    assert abs(reading.power_mw / 1000 - drawn_w) <= half_a_step_w + 0.001 + 1e-9


def test_the_xaviers_step_is_the_published_one() -> None:
    assert quantised(0.2, 19200, 4000) == Reading(voltage_mv=19200, current_ma=10)
    assert Reading(voltage_mv=19200, current_ma=10).power_mw == 192


@pytest.mark.parametrize("true_w", [0.19, 0.77, 2.9, 14.6])
def test_noise_carries_the_mean_across_the_steps(true_w: float) -> None:
    """A step is 192 mW here; the ripple dithers it away, as on the real board."""
    sensor, noise = Sensor(0.0, noise_relative=0.01, noise_w=0.07), random.Random(1)
    count = 20_000
    values = [sensor.observe(index, true_w, noise) or 0.0 for index in range(count)]
    read_w = [quantised(value, 19200, 4000).power_mw / 1000 for value in values]
    assert sum(read_w) / count == pytest.approx(true_w, abs=0.02)


def test_a_chips_conversion_takes_its_time(tmp_path: Path) -> None:
    """Between two conversions the registers keep their values."""
    create_tree("jetson-agx-orin", tmp_path / "tree")
    board = Sysroot(tmp_path / "tree")
    table = dict(layout.simulation_of("jetson-agx-orin")["ina3221"]) | {"update_period_s": 0.1}
    part = Ina3221(BOARDS["jetson-agx-orin"], table, "jetpack5")
    part.open(board)
    settings = Settings(policies=())
    (path,) = board.glob("/sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon0/curr1_input")
    seen = []
    for tick in range(40):
        rails_w = dict.fromkeys(("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0", "VDDQ_VDD2_1V8AO"), 1.0 + tick)
        part.tick(
            Moment(
                now_ns=10_000_000 * tick,
                passed_s=0.01,
                rails_w=rails_w,
                components_w={},
                energy_j={},
                state=settings.state(0),
                settings=settings,
                looked=True,
                warmth_c=30.0,
                noise=random.Random(1),
                faults=frozenset(),
            )
        )
        seen.append(board.read(path))
    part.close()
    assert [seen[tick] != seen[tick - 1] for tick in range(1, 40)] == [tick % 10 == 0 for tick in range(1, 40)]
