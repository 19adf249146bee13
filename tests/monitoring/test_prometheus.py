"""A real Prometheus with the shipped configuration reads a real server, and understands the shipped files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from forked_program import ForkedProgram
from free_port import free_port
from patient_http import http_answer
from prometheus_server import (
    SHIPPED,
    Prometheus,
    promtool,
    running_prometheus,
    shipped_config,
    wait_for_answer,
)
from server_database import fill

NEWEST = 'powerlab_newest_run_power_watts{device="board-1"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with data."""
    folder = tmp_path_factory.mktemp("server")
    fill(str(folder / "powerlab.db"))
    port = free_port()
    words = ["serve", "--port", str(port), "--database", str(folder / "powerlab.db")]
    with (folder / "log").open("w") as log:
        process = ForkedProgram(["-m", "powerlab.cli", *words], stdout=log, stderr=log)
    try:
        wait_for_answer(f"http://127.0.0.1:{port}/api/v1/health", process, folder / "log")
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def prometheus(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    config = shipped_config(folder / "config", {"server:8765": server})
    with running_prometheus(config, folder / "data") as running:
        running.wait_for(NEWEST)
        yield running


@pytest.mark.campaign
def test_the_fleet_s_figures_arrive_with_their_provenance(prometheus: Prometheus) -> None:
    ((labels, watts),) = prometheus.query(NEWEST)
    assert watts == pytest.approx(7.2)
    told = {"device", "model", "mode", "threads", "batch", "engine", "processor", "precision", "scenario"}
    assert {*told, "verdict", "provenance"} <= set(labels)
    assert (labels["provenance"], labels["verdict"], labels["model"]) == ("measured", "flagged", "resnet50")
    # what was not measured is not there, and above all not 0
    assert prometheus.query("powerlab_newest_run_temperature_celsius") == []
    assert prometheus.query('powerlab_newest_run_power_watts{device="board-2"}') == []


def test_counts_of_the_database(prometheus: Prometheus) -> None:
    counted = {
        'powerlab_device_runs_total{device="board-1", verdict="flagged"}': 5,
        'powerlab_device_runs_total{device="board-1", verdict="valid"}': 0,
        'powerlab_device_samples_total{device="board-1"}': 5000,
        'powerlab_jobs{state="queued"}': 1,
        'powerlab_jobs{state="running"}': 1,
        'powerlab_device_jobs{device="board-2", state="queued"}': 1,
        "powerlab_database_up": 1,
    }
    assert {expression: prometheus.query(expression)[0][1] for expression in counted} == counted
    ((_, age_s),) = prometheus.query("powerlab_oldest_queued_job_age_seconds")
    assert 0 <= age_s < 3600


def test_requests_are_counted_by_their_route(prometheus: Prometheus, server: str) -> None:
    for _ in range(3):
        http_answer("GET", f"http://{server}/api/v1/runs/nothing")
    one = 'powerlab_http_requests_total{method="GET", route="/api/v1/runs/{run_id}", status="404"}'
    prometheus.wait_for(f"{one} == 3")
    count = one.replace("requests_total", "request_duration_seconds_count").replace(', status="404"', "")
    prometheus.wait_for(f"{count} == 3")


def test_prometheus_finds_types_and_units(prometheus: Prometheus) -> None:
    """They come with OpenMetrics, which Prometheus asks for first."""
    known = prometheus.ask("metadata")
    assert known["powerlab_newest_run_power_watts"][0]["unit"] == "watts"
    assert known["powerlab_device_runs"][0]["type"] == "counter"
    assert known["powerlab_http_request_duration_seconds"][0]["type"] == "histogram"
    assert all(one[0]["help"] for name, one in known.items() if name.startswith("powerlab_"))


def test_the_rules_are_loaded_and_without_error(prometheus: Prometheus) -> None:
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) >= 9
    assert [rule["name"] for rule in rules if rule["health"] == "err"] == []


def test_promtool_finds_nothing_to_say_about_the_metrics(server: str) -> None:
    shown = http_answer("GET", f"http://{server}/metrics").data.decode()
    done = promtool("check", "metrics", text=shown)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert promtool("check", "metrics", text=shown + "powerlabTotal 1\n").returncode != 0


def test_promtool_accepts_the_configuration_and_the_rules(tmp_path: Path) -> None:
    config = shipped_config(tmp_path / "config", {})
    done = promtool("check", "config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    done = promtool("check", "rules", SHIPPED / "alerts.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    config.write_text(config.read_text().replace("scrape_configs", "scrape_config"))
    assert promtool("check", "config", config).returncode != 0


def test_the_alerts_speak_when_they_should() -> None:
    done = promtool("test", "rules", Path(__file__).with_name("alerts_test.yml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested() -> None:
    cases = Path(__file__).with_name("alerts_test.yml").read_text(encoding="utf-8")
    rules = (SHIPPED / "alerts.yml").read_text(encoding="utf-8")
    names = [line.split()[-1] for line in rules.splitlines() if "- alert:" in line]
    assert names
    assert [name for name in names if f"alertname: {name}\n        exp_alerts" not in cases] == []
