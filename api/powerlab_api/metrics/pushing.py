"""Push of metrics to an OTLP collector, if the environment names one.

The variables are OpenTelemetry's own (https://opentelemetry.io/docs/specs/otel/protocol/exporter/): where to, in
protobuf over HTTP, says OTEL_EXPORTER_OTLP_ENDPOINT or ..._METRICS_ENDPOINT; how, ..._HEADERS, ..._TIMEOUT,
..._CERTIFICATE and ..._COMPRESSION; how often, OTEL_METRIC_EXPORT_INTERVAL in ms; who sends, OTEL_SERVICE_NAME and
OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from powerlab.domain.errors import PowerlabError
from powerlab.periodic import at_intervals

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

_WHERE = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
_PACKAGES = ("opentelemetry.sdk.metrics", "opentelemetry.exporter.otlp.proto.http")
_NAME = "service.name"


@contextmanager
def pushed(registry: CollectorRegistry, environment: Mapping[str, str]) -> Iterator[None]:
    """Send a registry's metrics meanwhile, and once more at the end; do nothing where no collector is named.

    Raises:
        PowerlabError: the extra ``otlp`` is missing, or the interval is not a number.
    """
    named = next((name for name in _WHERE if environment.get(name)), None)
    if named is None:
        yield
        return
    interval_s = _interval_s(environment)
    if not all(map(_is_there, _PACKAGES)):
        raise PowerlabError(f"{named} is set, and that needs the otlp extra: `pip install 'powerlab[server,otlp]'`.")
    exporter, push = _exporter(registry)
    try:
        with at_intervals(push, interval_s, "powerlab-otlp", at_end=True):
            yield
    finally:
        exporter.shutdown()


def _exporter(registry: CollectorRegistry) -> tuple[OTLPMetricExporter, Callable[[], None]]:
    """Return what sends, and how to send what a registry says now."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.resources import Resource

    from powerlab_api.metrics.otlp import metrics_data

    # A collector that is away is tried again at the next interval: what was missed is in the counts that come then.
    exporter = OTLPMetricExporter()
    resource = Resource.create()
    if str(resource.attributes[_NAME]).startswith("unknown_service"):
        resource = Resource.create({_NAME: "powerlab-server"})

    def push() -> None:
        exporter.export(metrics_data(registry, resource, time.time_ns()))

    return exporter, push


def _interval_s(environment: Mapping[str, str]) -> float:
    text = environment.get(_INTERVAL) or "60000"
    try:
        interval_s = float(text) / 1000
    except ValueError:
        interval_s = 0.0
    if not 0 < interval_s < threading.TIMEOUT_MAX:
        raise PowerlabError(f"{_INTERVAL} is {text!r}; write a number of milliseconds, such as 60000.")
    return interval_s


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
