"""Warming up on a clock of its own: how long it takes, what it looks at, and what it says in the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.rigour import Rigour
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.recording.rails import Meter
from powerlab.measure.steady import warm_up as module
from powerlab.measure.steady.warm_up import WarmUp, warm_up
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree

PLAN = SweepPlan(models=("m",), threads=(1,), warm_up_s=1.0, longest_warm_up_s=20.0, duration_s=5.0)
WORKLOAD = Workload(model="m", batch_size=1)
Course = Callable[[float], float]


class World:
    """A clock that only the worker moves, and a worker, rails and a zone that follow given courses in time."""

    def __init__(self, latency_s: Course, power_w: Course | None = None, celsius: Course | None = None) -> None:
        self.now_ns = 1_000_000_000_000
        self._begin_ns = self.now_ns
        self._latency_s, self._power_w, self._celsius = latency_s, power_w, celsius
        self.asked_s: list[float] = []
        rails = () if power_w is None else (rail("VDD_IN", RailQuantity.POWER), rail("package", RailQuantity.ENERGY))
        total = TotalFormula(rails=tuple(one.key for one in rails), scope="all") if rails else None
        self.meter = Meter(sysroot=Sysroot(), total=total, rails=rails, sample_period_s=0.01)

    def since_s(self) -> float:
        return (self.now_ns - self._begin_ns) / 1e9

    def warm_up(self, duration_s: float) -> float:
        self.asked_s.append(duration_s)
        each_s = self._latency_s(self.since_s())
        count = max(1, math.ceil(duration_s / each_s))
        self.now_ns += round(count * each_s * 1e9)
        return each_s

    def recorded(self, from_ns: int) -> tuple[Trace, ...]:
        """Return the power since then: half of it by a rail of watts, half by a counter of joules."""
        if self._power_w is None:
            return ()
        time_ns = np.arange(from_ns, self.now_ns + 1, 10_000_000, dtype=np.int64)
        watts = np.array([self._power_w((at - self._begin_ns) / 1e9) / 2 for at in time_ns.tolist()])
        joules = np.concatenate(([0.0], np.cumsum((watts[1:] + watts[:-1]) / 2 * 0.01)))
        power, energy = self.meter.rails
        return (
            Trace(rail=power, time_ns=time_ns, value=watts),
            Trace(rail=energy, time_ns=time_ns, value=joules),
        )

    def zones(self) -> tuple[Trace, ...]:
        if self._celsius is None:
            return ()
        time_ns = np.arange(self._begin_ns, self.now_ns + 1, 100_000_000, dtype=np.int64)
        celsius = np.array([self._celsius((at - self._begin_ns) / 1e9) for at in time_ns.tolist()])
        cold = Trace(rail=rail("GPU-therm", RailQuantity.TEMPERATURE), time_ns=time_ns, value=celsius - 10.0)
        return cold, Trace(rail=rail("CPU-therm", RailQuantity.TEMPERATURE), time_ns=time_ns, value=celsius)


class FakeRecording:
    world: World

    def __init__(self, meter: Meter) -> None:
        self._from_ns = self.world.now_ns

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def finish(self) -> tuple[Trace, ...]:
        return self.world.recorded(self._from_ns)


class FakeThermometer(FakeRecording):
    def __init__(self, sysroot: Sysroot, period_s: float) -> None:
        assert period_s > 0

    def traces(self) -> tuple[Trace, ...]:
        return self.world.zones()


def rail(name: str, quantity: RailQuantity) -> Rail:
    return Rail(
        source="fake",
        name=name,
        quantity=quantity,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.SIMULATED,
    )


@pytest.fixture
def warmed(monkeypatch):
    """Warm a world up and return how that went."""

    def run(world: World, plan: SweepPlan = PLAN, workload: Workload = WORKLOAD) -> WarmUp:
        monkeypatch.setattr(FakeRecording, "world", world, raising=False)
        monkeypatch.setattr(module, "Recording", FakeRecording)
        monkeypatch.setattr(module, "Thermometer", FakeThermometer)
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic_ns=lambda: world.now_ns))
        return warm_up(world, world.meter, plan, workload)

    return run


def constant(value: float) -> Course:
    return lambda _: value


def approaching(start: float, end: float, tau_s: float) -> Course:
    return lambda second: end + (start - end) * math.exp(-second / tau_s)


def test_what_is_steady_at_once_is_warm_as_soon_as_there_is_enough_to_see(warmed):
    found = warmed(World(constant(0.02), constant(10.0), constant(50.0)))
    assert found.unsteady == ()
    assert 1.0 <= found.duration_s < 4.0


@pytest.mark.parametrize("tau_s", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("what", ["latency", "power", "temperature"])
def test_what_settles_is_waited_for(warmed, what, tau_s):
    courses = {"latency": constant(0.02), "power": constant(10.0), "temperature": constant(50.0)}
    settling = {
        "latency": approaching(0.04, 0.02, tau_s),
        "power": approaching(15.0, 10.0, tau_s),
        "temperature": approaching(40.0, 60.0, tau_s),
    }
    courses[what] = settling[what]
    patient = replace(PLAN, longest_warm_up_s=40.0)
    found = warmed(World(courses["latency"], courses["power"], courses["temperature"]), patient)
    assert found.unsteady == ()
    assert 3 * tau_s < found.duration_s < 10 * tau_s + 4
    left = abs(courses[what](found.duration_s) - courses[what](1e9)) / abs(courses[what](1e9))
    assert left < (0.02 if what == "temperature" else 0.01)


def test_what_never_settles_is_said_with_its_figure(warmed):
    found = warmed(
        World(
            lambda second: 0.02 * (1 + 0.006 * second),
            lambda second: 10.0 - 0.05 * second,
            lambda second: 40.0 + 0.5 * second,
        )
    )
    assert found.duration_s == pytest.approx(20.0, abs=0.3)
    latency, power, temperature = found.unsteady
    assert latency.startswith("latency still rose after 20 s of warm-up, by 2.")
    assert latency.endswith("% over the 5 s of a run (limit 1 %)")
    assert power.startswith("power still fell after 20 s of warm-up, by 2.")
    assert temperature == (
        "the temperature of CPU-therm still rose after 20 s of warm-up, by 2.5 °C over the 5 s of a run (limit 1 °C)"
    )


def test_noise_that_hides_a_drift_is_waited_out_and_not_said(warmed):
    rng = np.random.default_rng(3)
    found = warmed(World(lambda _: 0.02 * math.exp(rng.normal(scale=0.3))))
    assert found.duration_s == pytest.approx(20.0, abs=0.3)
    assert found.unsteady == ()


def test_a_device_without_power_and_zones_is_judged_by_its_latency_alone(warmed):
    assert warmed(World(constant(0.02))).unsteady == ()
    (sentence,) = warmed(World(lambda second: 0.02 * (1 + 0.01 * second))).unsteady
    assert sentence.startswith("latency")


def test_a_plan_without_warm_up_has_none(warmed):
    world = World(lambda second: 0.02 * (1 + second))
    assert warmed(world, replace(PLAN, warm_up_s=0.0)) == WarmUp(
        duration_s=0.0, unsteady=(), inference_s=pytest.approx(0.02)
    )
    assert world.asked_s == [0.0]


@given(least_s=st.floats(0.05, 30), longest_s=st.floats(0, 60), latency_s=st.floats(0.001, 0.5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_it_lasts_as_long_as_it_must_and_no_longer_than_it_may(warmed, least_s, longest_s, latency_s):
    world = World(lambda second: latency_s * (1 + 0.05 * second))
    found = warmed(world, replace(PLAN, warm_up_s=least_s, longest_warm_up_s=longest_s))
    last_s = latency_s * (1 + 0.05 * found.duration_s)
    assert found.duration_s >= least_s
    assert found.duration_s <= max(least_s, longest_s) + max(world.asked_s) + last_s
    assert max(world.asked_s) <= 1.0


def test_slow_models_are_judged_over_the_length_their_runs_have(warmed):
    """A thousand inferences of 0.02 s are 20 s, four times the plan's duration: so is the drift."""

    def slowing(second: float) -> float:
        return 0.02 * (1 + 0.0015 * second)

    assert warmed(World(slowing)).unsteady == ()
    (sentence,) = warmed(World(slowing), replace(PLAN, min_inferences=1000)).unsteady
    assert "over the 20" in sentence


def test_offline_a_level_counts_images(warmed):
    plan = replace(PLAN, rigour=Rigour.PUBLISHABLE)
    offline = replace(WORKLOAD, scenario=Scenario.OFFLINE, batch_size=8)
    (sentence,) = warmed(World(lambda second: 0.02 * (1 + 0.001 * second)), plan, offline).unsteady
    assert "over the 62" in sentence  # 24,576 images in batches of 8, each of which takes a little more than 0.02 s


@pytest.mark.parametrize("rise_c_s", [0.0, 5.0])
def test_real_zones_are_read_while_a_worker_warms_up(tmp_path, rise_c_s):
    """No clock of its own here: a worker that sleeps, and a zone that heats while it does, or stays as it is.

    How far it rose is left to the clock of the other tests: on a busy machine the readings may be too uneven to say.
    """
    tree = ZoneTree(tmp_path, ("CPU-therm", "40000"))
    meter = Meter(sysroot=tree.sysroot, total=None, rails=(), sample_period_s=0.01)
    begin_s = time.monotonic()

    class Sleeping:
        def warm_up(self, duration_s: float) -> float:
            time.sleep(duration_s)
            tree.heat(0, 40.0 + rise_c_s * (time.monotonic() - begin_s))
            return 0.01

    longest_s = 5.0 if rise_c_s else 600.0
    found = warm_up(Sleeping(), meter, replace(PLAN, warm_up_s=0.3, longest_warm_up_s=longest_s), WORKLOAD)
    if rise_c_s:
        assert found.duration_s >= longest_s
    else:
        assert found.duration_s < longest_s
        assert found.unsteady == ()
