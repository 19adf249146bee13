"""Metrics of a device's newest run and their OpenMetrics names, in base units."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.quantity import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFigure:
    """A figure of a run as a metric.

    Attributes:
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        name: the metric's name without its unit.
        unit: the base unit, the end of the whole name.
        per_unit: how many of the base unit one of the figure's own unit is.
    """

    metric: str
    name: str
    unit: str
    per_unit: float = 1.0

    @property
    def help(self) -> str:
        """What it is, in a sentence."""
        kind = METRICS[self.metric]
        return f"{kind.title} of the newest accepted run of a device; its interval and its budget stand at the run."


SHOWN = (
    ShownFigure(metric="latency_p50_ms", name="powerlab_newest_run_latency_p50", unit="seconds", per_unit=1e-3),
    ShownFigure(metric="latency_p99_ms", name="powerlab_newest_run_latency_p99", unit="seconds", per_unit=1e-3),
    ShownFigure(metric="throughput_img_per_s", name="powerlab_newest_run_throughput", unit="images_per_second"),
    ShownFigure(metric="power_w", name="powerlab_newest_run_power", unit="watts"),
    ShownFigure(metric="idle_power_w", name="powerlab_newest_run_idle_power", unit="watts"),
    ShownFigure(metric="energy_per_image_j", name="powerlab_newest_run_energy_per_image", unit="joules"),
    ShownFigure(metric="efficiency_img_per_s_per_w", name="powerlab_newest_run_efficiency", unit="images_per_joule"),
    ShownFigure(metric="end_temperature_c", name="powerlab_newest_run_temperature", unit="celsius"),
)
