"""A profile put together from windows: what is there, what is missing, and what is said about it."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from powerlab.domain.layers import Roof
from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload, WorkloadKind
from powerlab.measure.energy.budget import Part
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.layers.messages import WHOLE, Steps
from powerlab.measure.layers.profile import Measured, layer_profile
from powerlab.measure.layers.window import StepWindow

TOTAL = TotalFormula(rails=("ina3221:CPU",), scope="the module")
WATTS, MS = (10.0, 20.0, 14.0), (1.0, 4.0, 2.0)
WHOLE_W = (10 + 80 + 28) / 7
STEPS = Steps(
    tier="avx2",
    kernels=("reorder_to_blocks_f32_avx2", "conv_direct_f32_avx2", "pool_max_f32_avx2"),
    labels=("x interleaved", "conv", "pool"),
    operators=("", "FusedConv", "MaxPool"),
    nodes=((), ("conv", "relu"), ("pool",)),
    shapes=((1, 3, 8, 8), (1, 16, 8, 8), (1, 16, 4, 4)),
    flops=(0, 55_296, 2_304),
    bytes_moved=(1_536, 6_592, 5_120),
)


def energy(watts: float, provenance: Provenance = Provenance.SIMULATED, seconds: float = 2.0) -> TotalEnergy:
    parts = tuple(
        Part(origin="ina3221:CPU", effect=effect, standard_uncertainty=share * watts * seconds)
        for effect, share in (("gain", 0.01), ("sampling", 0.001))
    )
    return TotalEnergy(energy_j=watts * seconds, duration_s=seconds, parts=parts, provenance=provenance)


def alone(step: int, watts: float | None = None, **changes: object) -> StepWindow:
    fields: dict[str, object] = {
        "step": step,
        "window_ns": (0, 2_000_000_000),
        "each_ns": np.full(200, 0.9 * MS[step] * 1e6),
        "step_ns": np.zeros((200, 0)),
        "energy": energy(WATTS[step] if watts is None else watts),
        "findings": (),
        "steady": True,
        "windows": 1,
    }
    return StepWindow(**{**fields, **changes})


def whole(**changes: object) -> StepWindow:
    slow = np.linspace(0.9, 1.1, 101)[:, None]
    steps = slow * np.array(MS) * 1e6
    fields = {"each_ns": steps.sum(axis=1), "step_ns": steps, "energy": energy(WHOLE_W), **changes}
    return replace(alone(0), step=WHOLE, **fields)


def measured(*windows: StepWindow, **changes: object) -> Measured:
    fields: dict[str, object] = {
        "id": "an id",
        "started_at": "2026-11-21T09:30:00.000+00:00",
        "device_name": "board",
        "point": Point(workload=Workload(model="net.onnx", batch_size=4), threads=2, mode="MAXN"),
        "steps": STEPS,
        "windows": windows or (alone(1), whole(), alone(0), whole(), alone(2), whole()),
        "idle": energy(7.0),
        "roof": None,
        "no_roof": "none here",
        "simulated": True,
        "total": TOTAL,
        "no_power": "",
        "window_s": 2.0,
        "seed": 5,
    }
    return Measured(**{**fields, **changes})


def test_a_profile_says_what_was_measured_where():
    profile = layer_profile(measured())
    assert (profile.id, profile.device_name, profile.model, profile.mode) == ("an id", "board", "net.onnx", "MAXN")
    assert (profile.batch_size, profile.threads, profile.seed, profile.tier) == (4, 2, 5, "avx2")
    assert (profile.total, profile.no_power, profile.findings) == (TOTAL, "", ())


def test_layers_are_in_the_plans_order_whatever_order_they_were_measured_in():
    windows = [alone(0), alone(1), alone(2), whole(), whole()]
    before = layer_profile(measured(*windows))
    for seed in range(5):
        random.Random(seed).shuffle(windows)
        assert layer_profile(measured(*windows)) == before
    assert [layer.name for layer in before.layers] == list(STEPS.labels)
    assert [layer.nodes for layer in before.layers] == list(STEPS.nodes)


def test_a_layers_joules_are_its_power_for_its_time_in_an_inference():
    profile = layer_profile(measured())
    for layer, watts, milliseconds in zip(profile.layers, WATTS, MS, strict=True):
        assert layer.time.value == pytest.approx(milliseconds)
        assert layer.alone.value == pytest.approx(0.9 * milliseconds)
        assert layer.power.value == pytest.approx(watts)
        assert layer.energy.value == pytest.approx(watts * milliseconds / 1e3)
        assert layer.above_idle.value == pytest.approx((watts - 7) * milliseconds / 1e3)
        assert layer.energy.low < layer.energy.value < layer.energy.high


def test_whole_and_sum_agree_where_the_board_does():
    profile = layer_profile(measured())
    assert profile.whole.time.value == pytest.approx(7)
    assert profile.whole.energy.value == pytest.approx(0.118)
    assert profile.total_of_layers.energy.value == pytest.approx(0.118)
    assert profile.energy_ratio.low <= 1 <= profile.energy_ratio.high
    assert profile.energy_ratio.value == pytest.approx(1)
    assert profile.time_ratio.value == pytest.approx(1 / 0.9)
    assert profile.idle_power.value == pytest.approx(7)


def test_shares_are_of_the_wholes_energy():
    profile = layer_profile(measured())
    assert [layer.share_percent for layer in profile.layers] == pytest.approx([8.47, 67.8, 23.73], abs=0.01)


def test_once_is_the_inference_in_the_middle():
    profile = layer_profile(measured())
    assert [layer.once_us for layer in profile.layers] == pytest.approx([1000, 4000, 2000])


def test_without_power_there_are_times_shares_of_the_time_and_the_reason():
    windows = [alone(step, energy=None) for step in range(3)] + [whole(energy=None)]
    profile = layer_profile(measured(*windows, total=None, no_power="no sensor", idle=None))
    assert profile.no_power == "no sensor"
    assert profile.idle_power is profile.energy_ratio is None
    assert profile.whole.energy is profile.total_of_layers.energy is None
    assert all(layer.power is layer.energy is layer.above_idle is None for layer in profile.layers)
    assert [layer.share_percent for layer in profile.layers] == pytest.approx([100 / 7, 400 / 7, 200 / 7])


def test_without_an_idle_baseline_nothing_is_above_it():
    profile = layer_profile(measured(idle=None))
    assert profile.idle_power is profile.whole.above_idle is None
    assert all(layer.above_idle is None and layer.energy is not None for layer in profile.layers)


def test_a_layer_whose_power_may_not_be_used_leaves_no_sum():
    void = Finding(rule="power-gap", verdict=Verdict.VOID, detail="a gap")
    profile = layer_profile(measured(alone(0), alone(1, energy=None, findings=(void,)), alone(2), whole()))
    assert profile.layers[1].energy is None
    assert profile.layers[1].findings == (void,)
    assert profile.layers[1].time.value > 0
    assert profile.total_of_layers.energy is profile.energy_ratio is None
    assert profile.whole.energy is not None
    assert profile.no_power == ""


def test_where_no_power_at_all_may_be_used_that_is_the_reason():
    windows = [alone(step, energy=None) for step in range(3)] + [whole(energy=None)]
    assert "findings say why" in layer_profile(measured(*windows)).no_power


def test_a_whole_whose_power_may_not_be_used_leaves_shares_of_the_time():
    profile = layer_profile(measured(alone(0), alone(1), alone(2), whole(energy=None)))
    assert profile.energy_ratio is None
    assert profile.total_of_layers.energy.value == pytest.approx(0.118)
    assert sum(layer.share_percent for layer in profile.layers) == pytest.approx(100)


def test_the_whole_is_the_mean_of_its_windows():
    profile = layer_profile(measured(alone(0), alone(1), alone(2), whole(), whole(energy=energy(WHOLE_W + 2))))
    assert profile.whole.power.value == pytest.approx(WHOLE_W + 1)


def test_power_that_never_settled_is_said_of_the_profile_too():
    profile = layer_profile(measured(alone(0, steady=False, windows=3), alone(1), alone(2), whole(steady=False)))
    (finding,) = profile.findings
    assert (finding.rule, finding.verdict) == ("steady-state", Verdict.FLAGGED)
    assert "the power of x interleaved, the whole still drifted by more than 2%" in finding.detail
    assert (profile.layers[0].steady, profile.layers[0].windows) == (False, 3)


def test_many_restless_layers_are_counted_and_not_all_named():
    windows = [alone(step, steady=False) for step in range(3)] + [whole(steady=False), whole(steady=False)]
    assert "and 2 more" in layer_profile(measured(*windows)).findings[0].detail


def test_a_mode_that_changed_meanwhile_makes_the_profile_void():
    (finding,) = layer_profile(measured(drift="the clock fell")).findings
    assert (finding.rule, finding.verdict, finding.detail) == ("mode-drift", Verdict.VOID, "the clock fell")


@pytest.mark.parametrize(("simulated", "word"), [(True, "simulated"), (False, "measured")])
def test_times_are_the_clocks_and_joules_the_sensors(simulated, word):
    estimated = [alone(step, energy=energy(WATTS[step], Provenance.ESTIMATED)) for step in range(3)]
    windows = (*estimated, whole(energy=energy(WHOLE_W, Provenance.ESTIMATED)))
    profile = layer_profile(measured(*windows, simulated=simulated, idle=energy(7.0, Provenance.ESTIMATED)))
    assert {layer.time.provenance.value for layer in profile.layers} == {word}
    assert {layer.energy.provenance.value for layer in profile.layers} == {"estimated"}
    assert profile.energy_ratio.provenance is Provenance.ESTIMATED


def test_a_roof_goes_with_the_profile():
    roof = Roof(peak_gflops=100.0, memory_gb_per_s=10.0)
    assert layer_profile(measured(roof=roof, no_roof="")).roof == roof
    assert layer_profile(measured()).no_roof == "none here"


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_figures_scale_with_time(scale):
    windows = [alone(step, each_ns=np.full(50, scale * MS[step] * 1e6)) for step in range(3)]
    steps = scale * np.array(MS) * 1e6 * np.ones((40, 1))
    windows.append(whole(each_ns=steps.sum(axis=1), step_ns=steps))
    profile = layer_profile(measured(*windows))
    assert profile.whole.energy.value == pytest.approx(0.118 * scale)
    assert profile.time_ratio.value == pytest.approx(1)


def trained(*labels: str, windows: tuple[StepWindow, ...] = ()) -> Measured:
    """What was measured of a step of training, whose layers have these names."""
    workload = Workload(model="net.onnx", batch_size=4, kind=WorkloadKind.TRAIN, optimizer="sgd")
    point = Point(workload=workload, threads=2, mode="MAXN")
    return measured(*windows, steps=msgspec.structs.replace(STEPS, labels=labels), point=point)


def test_layers_of_a_step_are_added_up_by_its_parts():
    profile = layer_profile(trained("conv", "conv backward", "conv update"))
    assert list(profile.total_of_parts) == ["forward", "backward", "update"]
    for layer, whole in zip(profile.layers, profile.total_of_parts.values(), strict=True):
        assert whole.time.value == pytest.approx(layer.time.value)
        assert whole.energy.value == pytest.approx(layer.energy.value)
        assert whole.energy.high - whole.energy.value == pytest.approx(layer.energy.high - layer.energy.value, rel=0.01)
    assert not layer_profile(measured()).total_of_parts


def test_a_part_whose_power_is_missing_has_its_time_alone():
    windows = (alone(0), alone(1, energy=None), alone(2), whole())
    found = layer_profile(trained("conv", "loss", "conv update", windows=windows)).total_of_parts
    assert found["backward"].energy is None
    assert found["backward"].time.value == pytest.approx(4.0)
    assert found["update"].energy is not None
