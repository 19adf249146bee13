from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator.parts.ina3221 import Reading, quantised


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
