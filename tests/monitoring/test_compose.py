"""What compose would start, as plain processes: PostgreSQL, server, agent on a simulated board, Prometheus. And what
Grafana asks, asked of the Prometheus that has seen a sweep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compose_file import ROOT, Service, running, services
from free_port import free_port
from grafana_boards import FILES, Query, queries, read
from patient_http import http_answer
from postgres_cluster import new_database, postgres_cluster
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import Backlog, EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.wire import encode
from powerlab_agent.client import Client
from prometheus_server import Prometheus, wait_for_answer
from requires import require_program
from server_examples import capabilities, device

TOKEN = "try-out"
PLAN = SweepPlan(
    models=("mobilenetv2",),
    threads=(2,),
    batch_sizes=(1,),
    modes=("MAXN",),
    duration_s=1.0,
    warm_up_s=0.1,
    longest_warm_up_s=0.5,
    idle_s=0.3,
)
BACKLOG = Backlog(runs=3, refused_runs=2, chunks=40, size_bytes=5_000_000, oldest_age_s=7200.0, shed_runs=4)


@dataclass
class Stack:
    """Everything, running."""

    server: str
    prometheus: Prometheus
    device: str

    def ask(self, method: str, path: str, message: object = None) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        body = None if message is None else encode(message)
        reply = http_answer(method, f"{self.server}/api/v1{path}", body=body, headers=headers)
        assert reply.status < 300, reply.data
        return json.loads(reply.data)


@contextmanager
def shipped_prometheus(service: Service, home: Path, addresses: dict[str, str]) -> Iterator[Prometheus]:
    """Run the service with its own files, in which addresses are others and scrapes come twice a second."""
    etc = home / "etc"
    etc.mkdir()
    for inside, outside in service.mounts.items():
        text = outside.read_text(encoding="utf-8")
        for shipped, own in {**addresses, "scrape_interval: 15s": "scrape_interval: 500ms"}.items():
            text = text.replace(shipped, own)
        (etc / Path(inside).name).write_text(text, encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    data = f"path={home}/data --web.listen-address={address}"
    with running(service, {"/etc/prometheus": str(etc), "path=/prometheus": data}, home) as process:
        wait_for_answer(f"http://{address}/-/ready", process, home / "log")
        yield Prometheus(f"http://{address}")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    require_program("prometheus", "prometheus")
    shipped = services()
    homes = {name: tmp_path_factory.mktemp(name) for name in ("server", "agent", "prometheus")}
    port, agent_port = str(free_port()), str(free_port())
    server = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        database = new_database(stack.enter_context(postgres_cluster()))
        here = {shipped["server"].environment["POWERLAB_DATABASE"]: database, "8765": port}
        process = stack.enter_context(running(shipped["server"], here, homes["server"]))
        wait_for_answer(f"{server}/api/v1/health", process, homes["server"] / "log")
        here = {
            "http://server:8765": server,
            "8766": agent_port,
            "/usr/local/bin/enrol-and-run": str(ROOT / "agents" / "enrol-and-run"),
            "/var/lib/powerlab": str(homes["agent"]),
        }
        process = stack.enter_context(running(shipped["agent"], here, homes["agent"]))
        wait_for_answer(f"http://127.0.0.1:{agent_port}/metrics", process, homes["agent"] / "log")
        addresses = {"server:8765": f"127.0.0.1:{port}", "agent:8766": f"127.0.0.1:{agent_port}"}
        prometheus = stack.enter_context(shipped_prometheus(shipped["prometheus"], homes["prometheus"], addresses))
        ((labels, _),) = prometheus.wait_for("powerlab_device_info")
        yield Stack(server, prometheus, labels["device"])


def say_backlog(stack: Stack, name: str, said: Backlog) -> None:
    """Enrol a device whose agent says so much of its disk."""
    code = stack.ask("POST", "/enrolment-codes", EnrolmentCodeRequest())["code"]
    asked = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
    token = Client(stack.server).enrol(asked).token
    assert Client(stack.server, token).lease(0.0, said) is None


@pytest.fixture(scope="module")
def swept(stack: Stack) -> Stack:
    """The stack while there is something of everything: a sweep is done, one runs, two wait, an upload was refused, and
    another device says that runs wait on its disk.
    """
    (board,) = stack.ask("GET", "/devices")["items"]
    say_backlog(stack, "full", BACKLOG)
    for _ in range(4):
        stack.ask("POST", "/sweeps", SweepRequest(device_id=board["id"], plan=PLAN))
    refused = http_answer("PUT", f"{stack.server}/api/v1/runs/none", headers={"Authorization": "Bearer nobody's"})
    assert 400 <= refused.status < 500
    stack.prometheus.wait_for('max(powerlab_jobs{state="done"}) >= 1', patience_s=300)
    stack.prometheus.wait_for("powerlab_agent_job_planned_runs")
    return stack


@pytest.mark.campaign(minutes=1)
def test_a_sweep_on_the_simulated_board_is_measured_and_scraped(swept: Stack) -> None:
    ((labels, watts),) = swept.prometheus.query("powerlab_newest_run_power_watts")
    assert watts > 1.0
    told = {name: labels[name] for name in ("device", "model", "mode", "threads", "batch", "provenance")}
    assert told == {
        "device": swept.device,
        "model": "mobilenetv2",
        "mode": "MAXN",
        "threads": "2",
        "batch": "1",
        "provenance": "simulated",
    }
    ((_, samples),) = swept.prometheus.query(f'powerlab_device_samples_total{{device="{swept.device}"}}')
    assert samples > 100
    ups = {labels["job"]: up for labels, up in swept.prometheus.query("up")}
    assert ups == {"powerlab-server": 1.0, "powerlab-agent": 1.0}
    temperatures = swept.prometheus.query("powerlab_agent_temperature_celsius")
    assert temperatures
    assert {labels["provenance"] for labels, _ in temperatures} == {"simulated"}


@pytest.mark.campaign(minutes=1)
def test_what_an_agent_says_of_its_disk_is_shown_by_device(swept: Stack) -> None:
    found = {}
    for query in queries():
        for name in re.findall(r"powerlab_device_((?:backlog|shed)_\w+)", query.expression):
            of = {labels["device"]: value for labels, value in swept.prometheus.query(query.expression)}
            found[name] = of["full"]
    age_s = found.pop("backlog_oldest_age_seconds")
    assert BACKLOG.oldest_age_s <= age_s < BACKLOG.oldest_age_s + 3600
    assert found == {"backlog_runs": 3, "backlog_refused_runs": 2, "backlog_bytes": 5e6, "shed_runs_total": 4}


@pytest.mark.campaign(minutes=1)
@pytest.mark.parametrize("query", queries(), ids=lambda query: f"{query.board}: {query.panel}")
def test_a_panel_has_something_to_show(swept: Stack, query: Query) -> None:
    expression = query.filled(device=swept.device, instance=".*", __rate_interval="1m")
    assert swept.prometheus.wait_for(expression)  # between two jobs there is none in hand


@pytest.mark.campaign(minutes=1)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_variable_has_something_to_choose(swept: Stack, path: Path) -> None:
    for variable in read(path)["templating"]["list"]:
        if variable["type"] == "query":
            ((selector, label),) = re.findall(r"^label_values\((.+), (\w+)\)$", variable["query"]["query"])
            assert all(label in labels for labels, _ in swept.prometheus.wait_for(selector))


@pytest.mark.campaign(minutes=1)
def test_without_a_token_the_server_shows_no_metrics(stack: Stack) -> None:
    assert http_answer("GET", f"{stack.server}/metrics").status == 401
