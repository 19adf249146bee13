"""Conversion of a metrics registry to the OpenTelemetry data model.

https://opentelemetry.io/docs/specs/otel/metrics/data-model/ and its part on Prometheus and OpenMetrics. Names and
labels stay as they are at ``/metrics``: a query need not care which way a figure came. Needs the extra ``otlp``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as OtlpMetric
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import CollectorRegistry, Metric

from powerlab import __version__

_UCUM = {"seconds": "s", "watts": "W", "joules": "J", "bytes": "By", "celsius": "Cel"}
"""OpenTelemetry writes units as UCUM does; others as they are called."""
_UNKNOWN = 0
"""The start of a count that began before anybody looked; the data model's word for it."""
_Labels = tuple[tuple[str, str], ...]


def metrics_data(registry: CollectorRegistry, resource: Resource, now_ns: int) -> MetricsData:
    """Return what a registry shows now.

    Args:
        registry: where the metrics are.
        resource: who says so.
        now_ns: the time, in nanoseconds since 1970.
    """
    scope = InstrumentationScope("powerlab", __version__)
    metrics = [metric for family in registry.collect() for metric in _translated(family, now_ns)]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _translated(family: Metric, now_ns: int) -> Iterator[OtlpMetric]:
    """Yield a family as one metric; one without a value is none."""
    if not family.samples:
        return
    name = f"{family.name}_info" if family.type == "info" else family.name
    data: Gauge | Histogram | Sum
    if family.type == "histogram":
        data = Histogram(list(_histograms(family, now_ns)), AggregationTemporality.CUMULATIVE)
    elif family.type == "counter":
        total = f"{family.name}_total"
        starts = _starts(family)
        points = [
            NumberDataPoint(sample.labels, starts.get(_key(sample.labels), _UNKNOWN), now_ns, float(sample.value))
            for sample in family.samples
            if sample.name == total
        ]
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(
            [NumberDataPoint(sample.labels, _UNKNOWN, now_ns, float(sample.value)) for sample in family.samples]
        )
    yield OtlpMetric(name, family.documentation, _UCUM.get(family.unit, family.unit), data)


def _histograms(family: Metric, now_ns: int) -> Iterator[HistogramDataPoint]:
    """Yield a point a set of labels; OpenMetrics counts what is at most a bound, OTLP what lies between two."""
    starts = _starts(family)
    buckets: dict[_Labels, list[tuple[float, float]]] = {}
    sums: dict[_Labels, float] = {}
    for sample in family.samples:
        labels = _key({name: value for name, value in sample.labels.items() if name != "le"})
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    for labels, reached in buckets.items():
        reached.sort()
        before = [0.0, *(count for _, count in reached)]
        yield HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=starts.get(labels, _UNKNOWN),
            time_unix_nano=now_ns,
            count=round(reached[-1][1]),
            sum=sums[labels],
            bucket_counts=[round(count - less) for less, (_, count) in zip(before, reached, strict=False)],
            explicit_bounds=[bound for bound, _ in reached if not math.isinf(bound)],
            min=None,  # type: ignore[arg-type]  # nobody kept them, and OTLP leaves them open
            max=None,  # type: ignore[arg-type]
        )


def _starts(family: Metric) -> dict[_Labels, int]:
    """Return by labels when a count began, in ns, where it is known."""
    created = (sample for sample in family.samples if sample.name == f"{family.name}_created")
    return {_key(sample.labels): round(sample.value * 1e9) for sample in created}


def _key(labels: Mapping[str, str]) -> _Labels:
    return tuple(sorted(labels.items()))
