"""Metrics pushed by OTLP to a little receiver, which reads the protobuf that arrives."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest
from fastapi.testclient import TestClient
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from forked_program import ForkedProgram
from powerlab import periodic
from powerlab.domain.errors import PowerlabError
from powerlab_api.metrics import pushing
from powerlab_api.metrics.otlp import metrics_data
from powerlab_api.metrics.pushing import pushed
from server_database import fill


class Receiver(HTTPServer):
    """An OTLP/HTTP collector that keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.arrived: Queue[tuple[str, dict[str, str], ExportMetricsServiceRequest]] = Queue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        message = ExportMetricsServiceRequest.FromString(body)
        self.server.arrived.put((self.path, {name.lower(): value for name, value in self.headers.items()}, message))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = Thread(target=receiver.serve_forever)
    thread.start()
    yield receiver
    receiver.shutdown()
    thread.join()
    receiver.server_close()


@pytest.fixture
def environment(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    said = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20collector",
        "OTEL_METRIC_EXPORT_INTERVAL": "100",
        "OTEL_RESOURCE_ATTRIBUTES": "site=cellar",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    return said


def metrics_of(message: ExportMetricsServiceRequest) -> dict[str, Any]:
    (resource,) = message.resource_metrics
    (scope,) = resource.scope_metrics
    assert scope.scope.name == "powerlab"
    return {metric.name: metric for metric in scope.metrics}


def labels(point: Any) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in point.attributes}


def test_a_registry_arrives_whole(receiver: Receiver, environment: dict[str, str]) -> None:
    registry = CollectorRegistry()
    Counter("powerlab_things", "Things.", ("kind",), registry=registry).labels("odd").inc(3)
    Gauge("powerlab_power_watts", "Power.", unit="watts", registry=registry).set(7.25)
    Gauge("powerlab_nothing", "Without a value.", ("kind",), registry=registry)
    time_s = Histogram(
        "powerlab_wait_seconds", "Wait.", ("way",), unit="seconds", buckets=(0.1, 1.0), registry=registry
    )
    for value in (0.05, 0.06, 0.5, 7.0):
        time_s.labels("in").observe(value)
    with pushed(registry, environment):
        path, headers, message = receiver.arrived.get(timeout=60)
    assert path == "/v1/metrics"
    assert headers["authorization"] == "Bearer collector"
    assert headers["content-type"] == "application/x-protobuf"
    said = {pair.key: pair.value.string_value for pair in message.resource_metrics[0].resource.attributes}
    assert (said["service.name"], said["site"]) == ("powerlab-server", "cellar")
    assert said["service.instance.id"]
    found = metrics_of(message)
    assert set(found) == {"powerlab_things", "powerlab_power_watts", "powerlab_wait_seconds"}
    (things,) = found["powerlab_things"].sum.data_points
    assert (things.as_double, labels(things)) == (3.0, {"kind": "odd"})
    assert found["powerlab_things"].sum.is_monotonic
    assert 0 < things.start_time_unix_nano < things.time_unix_nano
    (power,) = found["powerlab_power_watts"].gauge.data_points
    assert (power.as_double, found["powerlab_power_watts"].unit) == (7.25, "W")
    (wait,) = found["powerlab_wait_seconds"].histogram.data_points
    assert (list(wait.bucket_counts), list(wait.explicit_bounds)) == ([2, 1, 1], [0.1, 1.0])
    assert (wait.count, wait.sum, labels(wait)) == (4, pytest.approx(7.61), {"way": "in"})
    assert not wait.HasField("min")
    assert found["powerlab_wait_seconds"].unit == "s"


def test_the_last_figures_are_sent_at_the_end(receiver: Receiver, environment: dict[str, str]) -> None:
    registry = CollectorRegistry()
    things = Counter("powerlab_things", "Things.", registry=registry)
    with pushed(registry, {**environment, "OTEL_METRIC_EXPORT_INTERVAL": "3600000"}):
        things.inc(5)
    _, _, message = receiver.arrived.get(timeout=60)
    assert metrics_of(message)["powerlab_things"].sum.data_points[0].as_double == 5


def test_what_arrives_is_what_is_scraped(client: TestClient, agent: Any) -> None:
    """Every series of a server, by either way."""
    registry = client.app.state.metrics.registry
    scraped = {
        (family.name + ("_info" if family.type == "info" else ""), tuple(sorted(sample.labels.items())))
        for family in registry.collect()
        for sample in family.samples
        if family.type != "histogram" and not sample.name.endswith("_created")
    }
    (resource,) = metrics_data(registry, Resource({}), 1).resource_metrics
    sent = {
        (metric.name, tuple(sorted(point.attributes.items())))
        for metric in resource.scope_metrics[0].metrics
        for point in metric.data.data_points
        if not hasattr(point, "bucket_counts")
    }
    assert sent == scraped
    assert len(sent) > 20


def test_a_collector_that_is_away_harms_nobody(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setattr(periodic, "_LAST_S", 0.1)
    with pushed(CollectorRegistry(), environment):
        pass


def test_without_a_collector_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "_exporter", lambda *_: pytest.fail("nobody asked for it"))
    with pushed(CollectorRegistry(), {"OTEL_METRIC_EXPORT_INTERVAL": "nonsense"}):
        pass


@pytest.mark.parametrize("text", ["soon", "0", "-5", "nan", "inf"])
def test_an_interval_that_is_none_is_one_sentence(environment: dict[str, str], text: str) -> None:
    with (
        pytest.raises(PowerlabError, match=r"OTEL_METRIC_EXPORT_INTERVAL is .*milliseconds"),
        pushed(CollectorRegistry(), {**environment, "OTEL_METRIC_EXPORT_INTERVAL": text}),
    ):
        pass


def test_without_the_extra_it_says_what_to_install(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pushing, "_PACKAGES", ("no_such_package.anywhere",))
    with (
        pytest.raises(PowerlabError, match=r"pip install 'powerlab\[server,otlp\]'"),
        pushed(CollectorRegistry(), environment),
    ):
        pass


def test_a_server_pushes_what_it_knows(receiver: Receiver, environment: dict[str, str], tmp_path: Path) -> None:
    database = str(tmp_path / "powerlab.db")
    fill(database)
    words = ["serve", "--port", "0", "--database", database]
    with ForkedProgram(
        ["-m", "powerlab.cli", *words],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            _, _, message = receiver.arrived.get(timeout=60)
        finally:
            process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    found = metrics_of(message)
    (power,) = found["powerlab_newest_run_power_watts"].gauge.data_points
    assert power.as_double == pytest.approx(7.2)
    assert (labels(power)["device"], labels(power)["provenance"]) == ("board-1", "measured")
    told = [(labels(point), point.as_double) for point in found["powerlab_device_runs"].sum.data_points]
    assert ({"device": "board-1", "verdict": "flagged"}, 5.0) in told
