"""All charts, in page order."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.analysis.trends.trends import Trend
from powerlab.domain.layers import LayerProfile
from powerlab_dashboards.charts import (
    heatmap,
    latency,
    latency_distribution,
    layer_energy,
    layer_roofline,
    pareto_front,
    power_trace,
    set_fronts,
    set_ratios,
    study_figures,
    throughput,
    trend,
)
from powerlab_dashboards.charts.base import Chart
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.study_figures import StudyCase


def _by_name(*modules: ModuleType) -> dict[str, Chart[Any]]:
    return {module.CHART.name: module.CHART for module in modules}


SWEEP_CHARTS: dict[str, Chart[Sequence[PointSummary]]] = _by_name(
    heatmap,
    pareto_front,
    latency,
    throughput,
)
LAYER_CHARTS: dict[str, Chart[LayerProfile]] = _by_name(
    layer_energy,
    layer_roofline,
)
RUN_CHARTS: dict[str, Chart[RunTraces]] = _by_name(
    power_trace,
    latency_distribution,
)
SET_CHARTS: dict[str, Chart[Any]] = _by_name(
    set_fronts,
    set_ratios,
)
STUDY_CHARTS: dict[str, Chart[StudyCase]] = _by_name(
    study_figures,
)
TREND_CHARTS: dict[str, Chart[Trend | None]] = _by_name(
    trend,
)
