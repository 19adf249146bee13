"""Layer profiles as a board might have given them, for tests of what reads them."""

from __future__ import annotations

from dataclasses import replace

from powerlab.domain.layers import Layer, LayerProfile, Roof, Whole
from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Verdict

_WORK = (
    # name, operator, nodes, kernel, FLOP, bytes, ms, W
    ("x interleaved", "", (), "reorder_to_blocks_f32_avx2", 0, 1_200_000, 0.2, 9.0),
    (
        "conv_0",
        "FusedConv",
        ("conv_0", "bn_1", "relu_2"),
        "conv_direct_f32_2x6_avx2",
        236_000_000,
        3_800_000,
        2.0,
        14.0,
    ),
    ("pool_3", "MaxPool", ("pool_3",), "pool_max_f32_avx2", 1_800_000, 4_000_000, 0.5, 10.0),
    ("fc_4", "FusedGemm", ("flat_4", "fc_4"), "conv_direct_f32_2x6_avx2", 4_100_000, 8_200_000, 0.8, 11.0),
)


def figure(name: str, value: float, provenance: Provenance, share: float = 0.05) -> Metric:
    """Return a figure with an interval of so much of its value to either side."""
    width = abs(value) * share
    return Metric(name=name, value=value, low=value - width, high=value + width, provenance=provenance)


def layer_profile(
    identifier: str = "6c1f0a52-6a55-4c3d-9f6e-0d4f1a2b3c4d",
    *,
    power: Provenance | None = Provenance.SIMULATED,
    clock: Provenance = Provenance.SIMULATED,
    roof: Roof | None = None,
    device_name: str = "xavier-sim",
) -> LayerProfile:
    """Return a profile of four layers; without power where ``power`` is None."""
    layers = tuple(_layer(index, power, clock) for index in range(len(_WORK)))
    time_ms = sum(layer.time.value for layer in layers)
    joules = sum(layer.energy.value for layer in layers if layer.energy is not None)
    whole = Whole(time=figure("layer_time_ms", time_ms, clock, 0.01))
    summed = Whole(time=figure("layer_alone_ms", 0.9 * time_ms, clock, 0.01))
    if power is not None:
        energies = {
            "energy": figure("layer_energy_j", joules, power),
            "above_idle": figure("layer_energy_above_idle_j", 0.4 * joules, power),
        }
        whole = replace(whole, power=figure("layer_power_w", joules / time_ms * 1e3, power), **energies)
        summed = replace(summed, **energies)
    return LayerProfile(
        id=identifier,
        started_at="2026-11-21T09:30:00.000+00:00",
        device_name=device_name,
        model="resnet50",
        batch_size=1,
        threads=2,
        mode="MAXN",
        tier="avx2",
        seconds_per_layer=2.0,
        seed=0,
        total=None if power is None else TotalFormula(rails=("ina3221:CPU",), scope="the module"),
        no_power="no power source can be read here" if power is None else "",
        idle_power=None if power is None else figure("layer_idle_power_w", 7.0, power),
        whole=whole,
        layers=layers,
        total_of_layers=summed,
        energy_ratio=None if power is None else figure("whole_per_sum_energy", 1.0, power, 0.02),
        time_ratio=figure("whole_per_sum_time", 1.11, clock, 0.02),
        roof=roof,
        no_roof="" if roof else "a simulated board has none",
    )


def _layer(index: int, power: Provenance | None, clock: Provenance) -> Layer:
    name, operator, nodes, kernel, flops, bytes_moved, time_ms, power_w = _WORK[index]
    joules = power_w * time_ms / 1e3
    layer = Layer(
        index=index,
        name=name,
        operator=operator,
        nodes=nodes,
        kernel=kernel,
        shape=(1, 8, 14, 14),
        flops=flops,
        bytes_moved=bytes_moved,
        once_us=1e3 * time_ms,
        time=figure("layer_time_ms", time_ms, clock),
        alone=figure("layer_alone_ms", 0.9 * time_ms, clock),
        share_percent=25.0,
    )
    if power is None:
        return layer
    return replace(
        layer,
        power=figure("layer_power_w", power_w, power),
        energy=figure("layer_energy_j", joules, power),
        above_idle=figure("layer_energy_above_idle_j", 0.4 * joules, power),
        findings=(Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="it was hot"),) if index == 1 else (),
    )
