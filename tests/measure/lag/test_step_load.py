"""The load that goes on and off, without a worker: its plan, and what becomes of what was recorded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.measure.lag import step_load
from powerlab.measure.lag.step_load import (
    PERIODS_A_LEVEL,
    SHORTEST_LEVEL_S,
    SLOWEST_S,
    StepLoad,
    level_s,
    measured_lags,
)
from powerlab.measure.recording.rails import Meter
from powerlab.measure.worker.process import WorkerError
from powerlab.sysroot import Sysroot
from tests.measure.stepped_sensors import SENSORS, Steps, record, true_lag_s


def meter_of(tmp_path, *rails) -> Meter:
    return Meter(sysroot=Sysroot(tmp_path), total=None, rails=rails, sample_period_s=0.005)


@given(cycles=st.integers(4, 50), level=st.floats(0.5, 20), seed=st.integers(0, 99))
def test_every_level_is_long_enough_and_the_last_one_is_rest(cycles, level, seed):
    load = StepLoad(threads=1, cycles=cycles, level_s=level, seed=seed)
    lengths = list(load.lengths_s())
    assert len(lengths) == 2 * cycles + 1
    assert all(level <= length <= 1.5 * level for length in lengths)
    assert list(load.lengths_s()) == lengths, "the seed decides"
    assert sum(lengths) == pytest.approx(load.expected_s, rel=0.25)


def test_the_edges_lie_at_any_phase_of_a_sensors_period():
    """In step with a period they would all see it at the same phase."""
    load = StepLoad(threads=1, cycles=100, level_s=1.0, seed=0)
    phases = np.cumsum(list(load.lengths_s())) % 0.1 / 0.1
    assert np.histogram(phases, bins=5, range=(0, 1))[0].min() > 20


def test_a_level_is_as_long_as_the_slowest_rail_needs_that_is_not_too_slow(tmp_path, make_rail):
    fast, slow, dead = (make_rail(name, update_period_s=s) for name, s in (("a", 0.001), ("b", 0.5), ("c", 9.0)))
    assert level_s(meter_of(tmp_path, fast)) == SHORTEST_LEVEL_S
    assert level_s(meter_of(tmp_path, fast, slow)) == PERIODS_A_LEVEL * 0.5
    assert level_s(meter_of(tmp_path, fast, slow, dead)) == PERIODS_A_LEVEL * 0.5
    assert level_s(meter_of(tmp_path, dead)) == SHORTEST_LEVEL_S


def test_every_rail_gets_its_lag_or_a_sentence_in_the_meters_order(tmp_path, make_rail, monkeypatch):
    sensor = SENSORS["nvidia-grace"]
    steps = Steps.draw(0.5, 6, seed=1)
    trace = record(sensor, steps.power_w, steps.until_ns)
    battery = make_rail("BAT0", source="battery", update_period_s=SLOWEST_S + 1)
    monkeypatch.setattr(step_load, "_recorded", lambda *_: ((trace,), list(steps.edges_ns), steps.until_ns))
    slow, good = measured_lags(meter_of(tmp_path, battery, trace.rail), StepLoad(threads=1, cycles=6, level_s=0.5))
    assert (slow.rail, slow.lag_s) == (battery, None)
    assert slow.problem == "battery:BAT0 has a new value only every 3 s, too slow for a step of load."
    assert good.lag_s == pytest.approx(true_lag_s(sensor), abs=0.02)


def test_no_load_is_run_for_rails_that_are_all_too_slow(tmp_path, make_rail, monkeypatch):
    monkeypatch.delattr(step_load, "_recorded")
    battery = make_rail("BAT0", source="battery", update_period_s=SLOWEST_S + 1)
    (slow,) = measured_lags(meter_of(tmp_path, battery), StepLoad(threads=1, cycles=4, level_s=0.5))
    assert "too slow" in slow.problem


def test_a_worker_that_dies_is_a_sentence(tmp_path, make_rail, monkeypatch):
    def die(*_: object) -> None:
        raise WorkerError("the worker was killed by SIGKILL.")

    monkeypatch.setattr(step_load, "_recorded", die)
    with pytest.raises(PowerlabError, match=r"the load cannot be run: the worker was killed by SIGKILL\."):
        measured_lags(meter_of(tmp_path, make_rail()), StepLoad(threads=1, cycles=4, level_s=0.5))
