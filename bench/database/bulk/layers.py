"""Layer profiles of the made-up fleet."""

from __future__ import annotations

from powerlab.domain.layers import Layer, LayerProfile, Whole
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Verdict

_LAYERS = 70


def layer_profile(identifier: str, device_name: str) -> LayerProfile:
    """Return a profile of as many layers as ResNet-50 has steps."""
    whole = Whole(time=_figure("layer_time_ms", 30.0), power=_figure("layer_power_w", 14.0))
    return LayerProfile(
        id=identifier, started_at="2026-01-02T03:04:05.678901+00:00", device_name=device_name, model="resnet50",
        batch_size=1, threads=4, mode="MAXN", tier="neon", seconds_per_layer=1.0, seed=0, total=None, no_power="",
        idle_power=_figure("layer_idle_power_w", 6.0), whole=whole, layers=tuple(map(_layer, range(_LAYERS))),
        total_of_layers=whole, energy_ratio=_figure("whole_per_sum_energy", 1.02),
        time_ratio=_figure("whole_per_sum_time", 1.01), roof=None, no_roof="not measured",
    )  # fmt: skip


def _layer(index: int) -> Layer:
    return Layer(
        index=index, name=f"conv_{index}", operator="FusedConv", nodes=(f"conv_{index}", f"bn_{index}"),
        kernel="conv_direct_f32_4x6_neon", shape=(1, 64, 56, 56), flops=236_000_000, bytes_moved=3_800_000, once_us=400,
        time=_figure("layer_time_ms", 0.4), alone=_figure("layer_alone_ms", 0.39),
        power=_figure("layer_power_w", 14.0), energy=_figure("layer_energy_j", 0.0056),
        above_idle=_figure("layer_energy_above_idle_j", 0.003), share_percent=100 / _LAYERS,
        findings=(Finding(rule="drift", verdict=Verdict.FLAGGED, detail="the power rose by 3 %"),),
    )  # fmt: skip


def _figure(name: str, value: float) -> Metric:
    return Metric(name=name, value=value, low=0.95 * value, high=1.05 * value, provenance=Provenance.MEASURED)
