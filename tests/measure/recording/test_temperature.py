"""Zones, the thread that reads them, and the two figures made of them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.boards.simulator import simulated_board
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.measure.recording.temperature import SOURCE, Thermometer
from powerlab.measure.steady.temperature_metrics import temperature_metrics
from powerlab.sysroot import Sysroot
from powerlab.throttling.zones import Zones
from zone_tree import ZoneTree


def zone_trace(name: str, time_s: list[float], celsius: list[float]) -> Trace:
    rail = Rail(
        source=SOURCE,
        name=name,
        quantity=RailQuantity.TEMPERATURE,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )
    time_ns = np.round(np.array(time_s) * 1e9).astype(np.int64)
    return Trace(rail=rail, time_ns=time_ns, value=np.array(celsius, dtype=np.float64))


def test_only_living_zones_of_what_computes_are_read(tmp_path):
    tree = ZoneTree(
        tmp_path,
        ("CPU-therm", "41500"),
        ("PMIC-Die", "100000"),
        ("dead-therm", "-256000"),
        ("iwlwifi_1", "61000"),
        ("GPU-therm", "40000"),
        ("garbage", "warm"),
        ("BAT0", "33000"),
    )
    zones = Zones(tree.sysroot)
    assert zones.read() == {"CPU-therm": 41.5, "GPU-therm": 40.0}
    assert zones.hottest_c() == 41.5


def test_zones_of_the_same_name_keep_apart(tmp_path):
    tree = ZoneTree(tmp_path, ("x86_pkg_temp", "40000"), ("acpitz", "27800"), ("x86_pkg_temp", "42000"))
    assert Zones(tree.sysroot).names == ("x86_pkg_temp-0", "acpitz", "x86_pkg_temp-2")


def test_a_machine_without_zones_has_no_temperature(tmp_path):
    zones = Zones(Sysroot(tmp_path))
    assert (zones.names, zones.read(), zones.hottest_c()) == ((), {}, None)
    with Thermometer(Sysroot(tmp_path)) as thermometer:
        assert thermometer.finish() == ()
    assert temperature_metrics((), (0, 1)) == ()


def test_a_zone_that_stops_to_answer_leaves_a_gap(tmp_path):
    tree = ZoneTree(tmp_path, ("CPU-therm", "40000"), ("GPU-therm", "50000"))
    zones = Zones(tree.sysroot)
    tree.remove(1)
    assert zones.read() == {"CPU-therm": 40.0}


def test_the_thermometer_reads_at_both_ends_and_between(tmp_path):
    tree = ZoneTree(tmp_path, ("CPU-therm", "40000"))
    begin_ns = time.monotonic_ns()
    with Thermometer(tree.sysroot, period_s=0.01) as thermometer:
        tree.heat(0, 45.0)
        deadline = time.monotonic() + 20
        while len(thermometer.traces()[0].value) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        tree.heat(0, 50.0)
        (trace,) = thermometer.finish()
    assert trace.value[0] == 40.0
    assert 45.0 in trace.value
    assert trace.value[-1] == 50.0
    assert np.all(np.diff(trace.time_ns) > 0)
    assert begin_ns <= trace.time_ns[0] <= trace.time_ns[-1] <= time.monotonic_ns()
    assert trace.rail.key == "thermal:CPU-therm"
    assert trace.rail.quantity is RailQuantity.TEMPERATURE
    assert trace.rail.provenance is Provenance.MEASURED
    assert 0 <= thermometer.core_share < 1


@pytest.mark.parametrize("name", ["jetson-agx-xavier", "jetson-nano", "intel-xeon"])
def test_simulated_boards_show_zones_that_are_simulated_and_no_fixed_one(name):
    with simulated_board(name) as sysroot, Thermometer(sysroot) as thermometer:
        traces = thermometer.finish()
    for trace in traces:
        assert trace.rail.provenance is Provenance.SIMULATED
        assert "pmic" not in trace.rail.name.lower()
        assert np.all((trace.value > 0) & (trace.value < 90))
    assert traces


def test_the_figures_are_the_hottest_zone_at_both_ends():
    zones = (zone_trace("CPU-therm", [0, 10], [40, 60]), zone_trace("GPU-therm", [0, 10], [45, 46]))
    start, end = temperature_metrics(zones, (1_000_000_000, 9_000_000_000))
    assert (start.name, start.value) == ("start_temperature_c", pytest.approx(45.1))
    assert (end.name, end.value) == ("end_temperature_c", pytest.approx(58.0))
    assert (start.low, start.high, start.provenance) == (None, None, Provenance.MEASURED)
    assert METRICS[start.name].unit == METRICS[end.name].unit == "°C"


def test_power_rails_are_no_zones(make_trace):
    assert temperature_metrics((make_trace([0, 10], [1000, 1000]),), (0, 1)) == ()


@given(
    celsius=st.lists(st.floats(-40, 120), min_size=1, max_size=8),
    start_s=st.floats(0, 10),
    length_s=st.floats(0.1, 10),
)
def test_the_figures_lie_within_what_was_read(celsius, start_s, length_s):
    trace = zone_trace("z", [float(second) for second in range(len(celsius))], celsius)
    window_ns = (round(start_s * 1e9), round((start_s + length_s) * 1e9))
    for metric in temperature_metrics((trace,), window_ns):
        assert min(celsius) - 1e-9 <= metric.value <= max(celsius) + 1e-9
