"""The main job the real way (server, agent, API) on a simulated board, and the same figures wherever one looks."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

pytestmark = pytest.mark.campaign
"""Short, but 40 s of a processor; the fast tests go the same way without the demo (``agent/test_command_line.py``)."""
DEMO = "demo --board jetson-agx-xavier --no-serve --seconds 10 --model mobilenetv2 --state demo"
DATABASE = ("--database", "demo/powerlab.db")


@pytest.fixture(scope="module")
def demo(shared_powerlab):
    """What the demo printed."""
    done = shared_powerlab(*DEMO.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(shared_powerlab, demo) -> list[dict]:
    return json.loads(answer(shared_powerlab, "runs", "list", "--json", *DATABASE))


def answer(powerlab, *words: str) -> str:
    done = powerlab(*words)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("source: ")] == []
    return done.stdout


def figures(runs: list[dict]) -> dict[tuple[str, str], tuple]:
    """By run and metric: value, interval and provenance."""
    return {
        (run["id"], metric["name"]): (metric["value"], metric["low"], metric["high"], metric["provenance"])
        for run in runs
        for metric in run["metrics"]
    }


def test_the_table_is_printed_with_provenance(demo, runs):
    for words in ("img/s/W", "simulated", "Best efficiency: ", "phases: server", "dashboard: http://127.0.0.1:"):
        assert words in demo
    assert "finished" in demo
    assert f"{len(runs)} runs on simulated-jetson-agx-xavier" in demo


def test_the_runs_are_in_the_database_with_simulated_figures(runs):
    assert len(runs) == 10
    assert {run["point"]["workload"]["model"] for run in runs} == {"mobilenetv2"}
    assert [run["findings"] for run in runs if run["verdict"] not in {"valid", "flagged"}] == []
    assert all(len(run["total"]["rails"]) == 6 for run in runs)
    assert {provenance for *_, provenance in figures(runs).values()} == {"simulated"}


def test_one_run_is_shown_as_it_is_listed(shared_powerlab, runs):
    shown = json.loads(answer(shared_powerlab, "runs", "show", runs[0]["id"], "--json", *DATABASE))
    assert shown == runs[0]
    for_people = answer(shared_powerlab, "runs", "show", runs[0]["id"], *DATABASE)
    assert runs[0]["id"] in for_people
    assert "simulated" in for_people


def test_ndjson_export_holds_the_same_runs(shared_powerlab, runs):
    lines = answer(shared_powerlab, "export", "--format", "ndjson", *DATABASE).splitlines()
    assert [json.loads(line) for line in lines] == runs


def test_csv_export_holds_the_same_figures(shared_powerlab, runs):
    answer(shared_powerlab, "export", "--format", "csv", "--output", "runs.csv", *DATABASE)
    rows = list(csv.DictReader(io.StringIO((shared_powerlab.home / "runs.csv").read_text())))

    def number(text: str) -> float | None:
        return float(text) if text else None

    found = {
        (row["run_id"], row["metric"]): (
            float(row["value"]),
            number(row["low"]),
            number(row["high"]),
            row["provenance"],
        )
        for row in rows
    }
    assert found == figures(runs)
    assert all(math.isfinite(value) for value, *_ in found.values())


def test_a_server_over_that_database_says_the_same(shared_powerlab, runs):
    with shared_powerlab.started("serve", "--port", "0", *DATABASE) as server:
        address = ("--server", server.stdout.readline().split()[-1])
        assert json.loads(answer(shared_powerlab, "runs", "list", "--json", *address)) == runs
        exported = answer(shared_powerlab, "export", "--format", "ndjson", *address).splitlines()
        assert [json.loads(line) for line in exported] == runs
        (sweep,) = json.loads(answer(shared_powerlab, "sweep", "list", "--json", *address))
        assert (sweep["state"], sweep["stored_run_count"]) == ("done", len(runs))
        shown = json.loads(answer(shared_powerlab, "sweep", "show", sweep["id"], "--json", *address))
        assert sum(summary["run_count"] for summary in shown["summaries"]) == len(runs)
        watched = answer_of_watch(shared_powerlab, sweep["id"], address)
        assert watched == shown


def answer_of_watch(powerlab, sweep: str, address: tuple[str, str]) -> dict:
    """What watching says in the end; its progress goes to standard error."""
    done = powerlab("sweep", "watch", sweep, "--json", *address)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
