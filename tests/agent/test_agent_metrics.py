"""What an agent says of itself at /metrics, while it measures, uploads, and cannot."""

from __future__ import annotations

import errno
import os
import re
import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import urllib3
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics

from free_port import free_port
from patient_http import http_answer
from powerlab.domain.errors import PowerlabError
from powerlab.sweep.events import RunFinished, RunStarted, SweepExtended, SweepStarted
from powerlab_agent import metrics as metrics_module
from powerlab_agent.contact import Contact, WatchedPool
from powerlab_agent.metrics import AgentCollector, _out_of_the_way, served
from powerlab_agent.spool import Spool
from powerlab_agent.spool_size import SpoolSize
from powerlab_agent.status import AgentState, Progress, Status
from prometheus_server import promtool
from server_examples import PLAN, make_run, make_trace

ALL = len(PLAN.points()) * PLAN.repeats
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "operations.md"
Start = Callable[..., Any]


def scrape(port: int) -> str:
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    reply = http_answer("GET", f"http://127.0.0.1:{port}/metrics", headers=headers)
    assert reply.status == 200
    return reply.data.decode()


def values(port: int) -> dict[str, float]:
    """Return the figures by name; a state by itself, as the one that holds."""
    found = {}
    for family in read_openmetrics(scrape(port)):
        for sample in family.samples:
            if family.type != "stateset":
                found[sample.name] = sample.value
            elif sample.value:
                found[sample.labels[family.name]] = 1.0
    return found


def wait_until(port: int, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    deadline = time.monotonic() + 60
    while not holds(seen := values(port)):
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)
    return seen


@pytest.mark.campaign(minutes=0.5)
def test_an_agent_measures_loses_its_server_and_finds_it_again(
    server: Any, sweep_id: str, start_agent: Start, state: Path
) -> None:
    port = free_port()
    began = time.time()
    agent = start_agent(METRICS_PORT=str(port))
    agent.measure(2)
    seen = values(port)
    assert seen["measuring"] == 1
    assert (seen["powerlab_agent_job_finished_runs"], seen["powerlab_agent_job_planned_runs"]) == (2, ALL)
    assert seen["powerlab_agent_spool_runs"] == 0
    assert began <= seen["powerlab_agent_last_contact_timestamp_seconds"] <= time.time()
    assert f'powerlab_agent_job_planned_runs{{sweep="{sweep_id}"}} {ALL}.0' in scrape(port)
    server.kill()
    for _ in range(3):
        agent.go_on()
        assert agent.wait_for_run()
    seen = values(port)
    assert seen["measuring"] == 1  # which needs no server
    assert seen["powerlab_agent_spool_runs"] == 3
    assert seen["powerlab_agent_spool_bytes"] >= (state / "spool.db").stat().st_size
    for _ in range(ALL - 5):
        agent.go_on()
        assert agent.wait_for_run()
    agent.go_on()
    seen = wait_until(port, lambda seen: "offline" in seen)
    assert "powerlab_agent_job_planned_runs" not in seen
    assert seen["powerlab_agent_spool_runs"] == ALL - 2
    server.start()
    assert not agent.wait_for_run()
    agent.process.communicate(timeout=60)
    assert len(server.runs(sweep_id)) == ALL


def test_promtool_and_the_page_agree_with_what_is_shown(server: Any, sweep_id: str, start_agent: Start) -> None:
    port = free_port()
    start_agent(METRICS_PORT=str(port)).measure(1)
    text = scrape(port)
    families = [family for family in read_openmetrics(text) if family.name.startswith("powerlab_")]
    names = {family.name + ("_info" if family.type == "info" else "") for family in families}
    table = PAGE.read_text(encoding="utf-8").partition("### Metrics of an agent\n")[2].partition("\n##")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == names
    for family in families:
        assert family.name.endswith(family.unit)
        assert family.documentation.endswith(".")
    told = {sample.labels["zone"]: sample for f in families if f.unit == "celsius" for sample in f.samples}
    assert {zone: sample.value for zone, sample in told.items()} == {"cpu-thermal": 41.5, "gpu-thermal": 39.0}
    assert {sample.labels["provenance"] for sample in told.values()} == {"measured"}
    classic = http_answer("GET", f"http://127.0.0.1:{port}/metrics").data.decode()
    done = promtool("check", "metrics", text=classic)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def refusal(host: str, port: int) -> str:
    with pytest.raises(PowerlabError) as caught, served(AgentCollector.__new__(AgentCollector), host, port):
        pass
    assert str(caught.value).startswith(f"the metrics cannot be served on port {port} of {host!r} (")
    return str(caught.value)


def test_a_port_that_somebody_has_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refusal("127.0.0.1", taken.getsockname()[1])
    assert said.endswith("(Address already in use); choose another with --metrics-port.")


@pytest.mark.parametrize("host", ["192.0.2.1", "", "a" * 64, "::ffff:192.0.2.1"])
def test_an_address_that_is_not_this_machine_s_is_one_sentence(host: str) -> None:
    assert refusal(host, free_port()).endswith("; give an address of this machine with --metrics-host.")


def test_a_port_that_only_root_may_have_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel says it to another user, unless its net.ipv4.ip_unprivileged_port_start lets everybody."""

    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(metrics_module, "start_http_server", forbidden)
    assert "(Permission denied); choose one from 1024 on with --metrics-port" in refusal("127.0.0.1", 80)


def test_a_state_follows_what_happens() -> None:
    status = Status()
    assert status.state(reachable=False) is AgentState.OFFLINE
    assert status.state(reachable=True) is AgentState.IDLE
    point = PLAN.points()[0]
    run = make_run("s", point, 0)
    with status.job():
        for event, progress, measured in (
            (SweepStarted(sweep_id="s", run_count=2, expected_s=1.0), (0, 2), None),
            (RunStarted(point=point, repeat=0, index=1, run_count=2), (0, 2), point),
            (RunFinished(run=run, traces=(), index=1, run_count=2), (1, 2), None),
            (SweepExtended(run_count=5, detail="Once more."), (1, 5), None),
        ):
            status.note(event)
            assert status.progress == Progress(sweep_id="s", finished=progress[0], planned=progress[1])
            assert status.point == measured
        assert status.state(reachable=False) is AgentState.MEASURING
        with status.during(AgentState.UPLOADING):
            assert status.state(reachable=True) is AgentState.UPLOADING
            assert status.state(reachable=False) is AgentState.OFFLINE
        assert status.state(reachable=True) is AgentState.MEASURING
    assert (status.progress, status.state(reachable=True)) == (None, AgentState.IDLE)


def test_a_job_that_breaks_off_leaves_an_idle_agent() -> None:
    status = Status()

    def break_off() -> None:
        with status.job():
            status.note(SweepStarted(sweep_id="s", run_count=2, expected_s=1.0))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()
    assert (status.progress, status.point, status.doing) == (None, None, AgentState.IDLE)


def test_a_scrape_stays_off_the_cores_that_are_measured() -> None:
    every = os.sched_getaffinity(0)
    first = min(every)
    status = Status(point=replace(PLAN.points()[0], threads=1, cores=str(first)))
    with _out_of_the_way(status):
        assert os.sched_getaffinity(0) == (every - {first} or every)
    assert os.sched_getaffinity(0) == every
    all_of_them = ",".join(map(str, sorted(every)))
    with _out_of_the_way(Status(point=replace(PLAN.points()[0], threads=len(every), cores=all_of_them))):
        assert os.sched_getaffinity(0) == every  # nowhere to go


class Moody(BaseHTTPRequestHandler):
    """Answers with the status that the path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_contact_is_what_was_answered() -> None:
    contact = Contact()
    with HTTPServer(("127.0.0.1", 0), Moody) as moody, WatchedPool(contact, retries=False) as pool:
        address = f"http://127.0.0.1:{moody.server_port}"
        thread = Thread(target=moody.serve_forever)
        thread.start()
        pool.request("GET", f"{address}/503")
        assert (contact.reachable, contact.answered_at_s) == (False, None)
        pool.request("GET", f"{address}/404")  # no, but an answer
        assert contact.reachable
        assert contact.answered_at_s == pytest.approx(time.time(), abs=60)
        moody.shutdown()
        thread.join()
    before = contact.answered_at_s
    with WatchedPool(contact, retries=False) as pool, pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", address)
    assert (contact.reachable, contact.answered_at_s) == (False, before)


def test_a_spool_is_counted_without_being_touched(tmp_path: Path) -> None:
    path = tmp_path / "a b" / "spool.db"
    path.parent.mkdir()
    runs = [make_run("s", PLAN.points()[0], repeat) for repeat in range(4)]
    with closing(Spool(path)) as spool:
        size = SpoolSize(path)
        assert size.run_counts() == (0, 0)
        for index, run in enumerate(runs, start=1):
            spool.add(RunFinished(run=run, traces=(make_trace(count=20),), index=index, run_count=4), 1)
            assert size.run_counts() == (index, 0)
        before = size.size_bytes()
        assert before >= path.stat().st_size
        spool.remove(runs[0].id)
        spool.set_aside(runs[1].id, "cannot-be-done", "no")
        assert size.run_counts() == (2, 1)
    assert size.run_counts() == (2, 1)
