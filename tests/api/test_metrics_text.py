"""The text of the fleet's metrics is what Prometheus' own client would have written, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from powerlab.protocol.messages import Lease, RunUpload
from powerlab_api.metrics.text import plain_text
from server_examples import runs_of
from tests.api.conftest import Agent

CLASSIC = "text/plain"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
LABELS = st.text(st.characters(codec="utf-8"), max_size=8)


class Shown(Collector):
    """Families as they are."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield them."""
        yield from self._families


def theirs(families: Iterable[Metric], accept: str) -> str:
    registry = CollectorRegistry()
    registry.register(Shown(families))
    return choose_encoder(accept)[0](registry).decode().removesuffix("# EOF\n")


@pytest.mark.parametrize("accept", [CLASSIC, OPENMETRICS])
@given(names=st.lists(LABELS, max_size=4), number=st.floats(), words=st.text(max_size=10).map(lambda it: it + "."))
def test_any_names_and_numbers(accept: str, names: list[str], number: float, words: str) -> None:
    info = InfoMetricFamily("a_device", words, labels=("device",))
    power = GaugeMetricFamily("a_power", words, labels=("zone", "device"), unit="watts")
    runs = CounterMetricFamily("some_runs", words, labels=("device",))
    for name in names:
        info.add_metric((name,), {"board": name, "architecture": "aarch64"})
        power.add_metric(("cpu", name), number)
        runs.add_metric((name,), abs(number))
    families = (info, power, runs, GaugeMetricFamily("up", words, value=1.0))
    assert plain_text(families, openmetrics=accept == OPENMETRICS) == theirs(families, accept)


@pytest.mark.campaign
@pytest.mark.parametrize("accept", [CLASSIC, OPENMETRICS, "", f"{OPENMETRICS}; escaping=allow-utf-8"])
def test_a_server_shows_all_of_its_metrics_once(
    client: TestClient, agent: Agent, sweep_id: str, lease: Lease, accept: str
) -> None:
    run = runs_of(sweep_id)[0]
    upload = RunUpload(fencing_token=lease.fencing_token, run=run)
    assert agent.send("PUT", f"/runs/{run.id}", upload).status_code == 201
    reply = client.get("/metrics", headers={"accept": accept})
    encode, kind = choose_encoder(accept)
    assert reply.headers["content-type"] == kind
    whole = encode(client.app.state.metrics.registry).decode()  # type: ignore[attr-defined]
    heads = [line for line in whole.splitlines() if line.startswith("#")]
    assert [line for line in reply.text.splitlines() if line.startswith("#")] == heads
    fleet = [line for line in whole.splitlines() if line.startswith(("powerlab_device", "powerlab_newest_run"))]
    assert len(fleet) > 10
    assert [line for line in reply.text.splitlines() if line in fleet] == fleet
