"""``powerlab repeat``: runs join the sweep that has too few, in its file and in the database, and nothing is lost."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.campaign(minutes=2)

SWEEP = (
    "mobilenetv2",
    "--sysroot",
    "machine",
    "--threads",
    "1,2",
    "--warm-up",
    "0",
    "--idle",
    "0",
    "--duration",
    "0.05",
)


@pytest.fixture
def powerlab(powerlab):
    """A machine without sensors: its runs take milliseconds."""
    (powerlab.home / "machine").mkdir()
    return powerlab


def kept(powerlab) -> dict[str, list[dict]]:
    """Return by sweep the lines of its results file."""
    files = (powerlab.state / "sweeps").glob("*.ndjson")
    return {file.stem: [json.loads(line) for line in file.read_text().splitlines()] for file in files}


@pytest.mark.parametrize("database", [(), ("--database", "none")])
def test_runs_join_the_sweep_wherever_it_is_kept(powerlab, database):
    first = json.loads(powerlab("profile", *SWEEP, *database, "--json").stdout)
    assert {one["missing_repeats"] for one in first["best"]} <= {0, 1, 2, 3}
    done = powerlab("repeat", first["sweep_id"][:8], "--add", "2", "--sysroot", "machine", *database, "--json")
    assert done.returncode in {0, 1}, done.stderr
    again = json.loads(done.stdout)
    assert again["sweep_id"] == first["sweep_id"]
    assert again["plan"]["repeats"] == first["plan"]["repeats"] + 2
    earlier = {run["id"]: run for run in first["runs"]}
    assert {run["id"]: run for run in again["runs"] if run["id"] in earlier} == earlier
    assert sorted(run["repeat"] for run in again["runs"]) == sorted(2 * list(range(5)))
    assert {summary["run_count"] for summary in again["summaries"]} == {5}
    (lines,) = kept(powerlab).values()
    assert lines[0]["plan"]["repeats"] == 5
    assert sorted(line["run"]["id"] for line in lines[1:]) == sorted(run["id"] for run in again["runs"])
    if not database:
        stored = json.loads(powerlab("runs", "list", "--json").stdout)
        assert sorted(run["id"] for run in stored) == sorted(run["id"] for run in again["runs"])


def test_another_device_is_refused_and_the_sweep_stays_as_it_was(powerlab):
    first = json.loads(powerlab("profile", *SWEEP, "--json").stdout)
    before = kept(powerlab)
    refused = powerlab("repeat", first["sweep_id"], "--board", "jetson-nano")
    assert refused.returncode == 2
    assert "was measured on" in refused.stderr
    nothing = powerlab("repeat", first["sweep_id"], "--add", "0", "--sysroot", "machine")
    assert nothing.returncode == 2
    assert "0 repeats add nothing; give at least 1." in nothing.stderr
    assert kept(powerlab) == before
