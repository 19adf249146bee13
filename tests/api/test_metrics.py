"""What a monitor reads at /metrics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_classic
from sqlalchemy import event

from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Verdict
from powerlab.protocol.messages import Backlog, Beat, Lease, RunUpload
from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.metrics.figures import SHOWN
from powerlab_api.metrics.fleet import FleetCollector
from powerlab_api.settings import Settings
from server_examples import Clock, runs_of

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def scrape(client: TestClient, **headers: str) -> str:
    reply = client.get("/metrics", headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.text


def value(text: str, name: str, **labels: str) -> float | None:
    """Return the value of the sample of that name with at least those labels."""
    for family in read_classic(text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return None


def test_each_reader_gets_the_format_it_asks_for(client: TestClient, agent: Any) -> None:
    for accept, kind, read, end in (
        (None, "text/plain; version=0.0.4", read_classic, False),
        ("text/plain", "text/plain; version=0.0.4", read_classic, False),
        (OPENMETRICS, OPENMETRICS, read_openmetrics, True),
        (f"{OPENMETRICS};q=0.5,text/plain;q=0.2", OPENMETRICS, read_openmetrics, True),
    ):
        reply = client.get("/metrics", headers={} if accept is None else {"Accept": accept})
        assert reply.headers["content-type"].startswith(kind)
        assert reply.text.endswith("# EOF\n") is end
        assert {"powerlab_jobs", "powerlab_build_info"} <= {
            sample.name for family in read(reply.text) for sample in family.samples
        }


def test_every_name_ends_with_its_base_unit(client: TestClient, agent: Any) -> None:
    for family in read_openmetrics(scrape(client, Accept=OPENMETRICS)):
        if family.name.startswith("powerlab_"):
            assert family.documentation.endswith(".")
            assert family.name.endswith(family.unit)
            for wrong in ("_ms", "_ns", "_w", "_j", "_mb", "_percent"):
                assert not family.name.endswith(wrong)


def test_requests_are_counted_by_pattern_and_never_by_address(client: TestClient, agent: Any) -> None:
    for path in ("/api/v1/runs/one", "/api/v1/runs/two", "/api/v1/health", "/nothing", "/api/v1/nothing"):
        client.get(path)
    client.request("BREW", "/api/v1/health")
    text = scrape(client)
    requests = "powerlab_http_requests_total"
    assert value(text, requests, route="/api/v1/runs/{run_id}", method="GET", status="404") == 2
    assert value(text, requests, route="/api/v1/health", status="200") == 1
    assert value(text, requests, route="none", status="404") == 2
    assert value(text, requests, method="other", status="405") == 1
    assert value(text, requests, route="/api/v1/agents", method="POST", status="201") == 1
    assert value(text, "powerlab_http_request_duration_seconds_count", route="/api/v1/runs/{run_id}") == 2
    assert not [word for word in ("one", "two", "nothing", "BREW") if f'"{word}"' in text or f"/{word}" in text]


def test_what_the_guard_refuses_is_counted_too(store: Store) -> None:
    with TestClient(create_app(store, Settings(max_body_bytes=10))) as small:
        assert small.post("/api/v1/enrolment-codes", content=b"x" * 11).status_code == 413
        assert value(scrape(small), "powerlab_http_requests_total", route="none", status="413") == 1


def test_metrics_need_a_token_where_the_server_has_one(store: Store) -> None:
    with TestClient(create_app(store, Settings(operator_token="s3cret"))) as closed:
        refused = closed.get("/metrics")
        assert (refused.status_code, refused.headers["content-type"]) == (401, "application/problem+json")
        assert "powerlab_jobs" in scrape(closed, Authorization="Bearer s3cret")


def test_figures_of_different_provenance_never_share_a_series(
    client: TestClient, agent: Any, lease: Lease, sweep_id: str
) -> None:
    run = runs_of(sweep_id)[0]
    parts = {"power_w": Provenance.ESTIMATED, "efficiency_img_per_s_per_w": Provenance.ESTIMATED}
    metrics = tuple(replace(m, provenance=parts.get(m.name, m.provenance)) for m in run.metrics)
    upload = RunUpload(fencing_token=lease.fencing_token, run=replace(run, metrics=metrics))
    assert agent.send("PUT", f"/runs/{run.id}", upload).status_code == 201
    text = scrape(client)
    point = {
        "device": "board-1",
        "model": "resnet50",
        "mode": run.point.mode,
        "threads": str(run.point.threads),
        "batch": str(run.point.workload.batch_size),
        "verdict": "flagged",
    }
    watts, speed = "powerlab_newest_run_power_watts", "powerlab_newest_run_throughput_images_per_second"
    assert value(text, watts, provenance="estimated", **point) == pytest.approx(7.2)
    assert value(text, watts, provenance="measured") is None
    assert value(text, speed, provenance="measured", **point) == pytest.approx(31.7)
    assert value(text, "powerlab_newest_run_latency_p50_seconds", **point) == pytest.approx(1 / 31.7)
    assert value(text, "powerlab_newest_run_efficiency_images_per_joule", **point) == pytest.approx(31.7 / 7.2)


def test_a_figure_that_was_not_measured_is_absent(client: TestClient, agent: Any, lease: Lease, sweep_id: str) -> None:
    run = runs_of(sweep_id)[0]
    without = tuple(m for m in run.metrics if m.name not in {"power_w", "efficiency_img_per_s_per_w"})
    upload = RunUpload(fencing_token=lease.fencing_token, run=replace(run, metrics=without))
    assert agent.send("PUT", f"/runs/{run.id}", upload).status_code == 201
    text = scrape(client)
    assert value(text, "powerlab_newest_run_throughput_images_per_second") is not None
    assert value(text, "powerlab_newest_run_power_watts") is None
    assert value(text, "powerlab_newest_run_efficiency_images_per_joule") is None


def test_a_failed_run_does_not_hide_what_was_measured_before(
    client: TestClient, agent: Any, lease: Lease, sweep_id: str
) -> None:
    good, bad, *_ = runs_of(sweep_id)
    for run in (good, replace(bad, verdict=Verdict.FAILED, metrics=())):
        upload = RunUpload(fencing_token=lease.fencing_token, run=run)
        assert agent.send("PUT", f"/runs/{run.id}", upload).status_code == 201
    text = scrape(client)
    assert value(text, "powerlab_newest_run_power_watts", threads=str(good.point.threads)) is not None
    assert value(text, "powerlab_device_runs_total", verdict="failed") == 1


def test_the_age_of_the_oldest_job(client: TestClient, sweep_id: str, agent: Any, clock: Clock) -> None:
    clock.forward(90)
    assert value(scrape(client), "powerlab_oldest_queued_job_age_seconds") == 90
    assert value(scrape(client), "powerlab_device_jobs", device="board-1", state="queued") == 1


def test_without_queued_jobs_there_is_no_age(client: TestClient, agent: Any) -> None:
    text = scrape(client)
    assert value(text, "powerlab_oldest_queued_job_age_seconds") is None
    assert value(text, "powerlab_jobs", state="queued") == 0


def test_what_waits_on_a_device_is_told_by_its_agent_and_absent_until_then(
    store: Store, client: TestClient, agent: Any, clock: Clock, lease: Lease
) -> None:
    text = scrape(client)
    names = [f"powerlab_device_backlog_{name}" for name in ("runs", "refused_runs", "chunks", "bytes")]
    for name in (*names, "powerlab_device_backlog_oldest_age_seconds", "powerlab_device_shed_runs_total"):
        assert value(text, name) is None
    said = Backlog(runs=3, refused_runs=1, chunks=12, size_bytes=5000, oldest_age_s=90.0, shed_runs=2)
    beat = Beat(fencing_token=lease.fencing_token, backlog=said)
    assert agent.send("POST", f"/jobs/{lease.job_id}/heartbeat", beat).status_code == 200
    clock.forward(10)
    with TestClient(create_app(store, Settings())) as other:  # which has not asked the database a moment ago
        text = scrape(other)
    assert [value(text, name, device="board-1") for name in names] == [3, 1, 12, 5000]
    assert value(text, "powerlab_device_backlog_oldest_age_seconds") == 100
    assert value(text, "powerlab_device_shed_runs_total") == 2


def test_a_database_that_is_away_costs_its_own_figures_alone(store: Store, client: TestClient, agent: Any) -> None:
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE job RENAME TO job_elsewhere")
    text = scrape(client)
    assert value(text, "powerlab_database_up") == 0
    assert value(text, "powerlab_jobs") is None
    assert value(text, "powerlab_http_requests_total") is not None
    assert value(text, "powerlab_build_info", version="0.1.0") == 1


def test_however_many_ask_the_database_is_asked_once_in_a_while(store: Store) -> None:
    now_s = 0.0
    collector = FleetCollector(store, lambda: now_s)
    asked = 0

    def note(*_: object) -> None:
        nonlocal asked
        asked += 1

    event.listen(store.engine, "before_cursor_execute", note)
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda _: list(collector.collect()), range(16)))
    once, now_s = asked, 4.9
    list(collector.collect())
    assert asked == once > 0
    now_s = 5.1
    list(collector.collect())
    assert asked == 2 * once


def test_two_servers_with_one_database_say_the_same_of_it(store: Store, client: TestClient, sweep_id: str) -> None:
    with TestClient(create_app(store)) as other:
        own = ("powerlab_http_", "powerlab_database_connections", "process_", "python_")
        told = [
            sorted(line for line in scrape(one).splitlines() if not line.startswith(("#", *own)))
            for one in (client, other)
        ]
    assert told[0] == told[1]
    assert any(line.startswith("powerlab_jobs") for line in told[0])


def test_shown_figures_are_figures_of_a_run_in_base_units() -> None:
    assert {shown.metric for shown in SHOWN} <= set(METRICS)
    assert len({(shown.name, shown.unit) for shown in SHOWN}) == len(SHOWN)
    for shown in SHOWN:
        assert shown.per_unit == (1e-3 if METRICS[shown.metric].unit == "ms" else 1.0)
