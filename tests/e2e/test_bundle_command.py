"""A sweep of a simulated board, reported, packed, verified elsewhere, and repeated from its bundle."""

from __future__ import annotations

import json

import pytest

SHORT = "--threads 1 --repeats 3 --duration 1 --warm-up 0.2 --longest-warm-up 0.2 --idle 0.5"


@pytest.mark.campaign
def test_a_bundle_is_all_that_it_takes_to_check_and_repeat_a_sweep(shared_powerlab):
    done = shared_powerlab("profile", "mobilenetv2", "--board", "jetson-orin-nano", *SHORT.split(), "--json")
    assert done.returncode in {0, 1}, done.stderr
    sweep = json.loads(done.stdout)
    path = str(shared_powerlab.home / "sweep.zip")
    page = str(shared_powerlab.home / "sweep.html")
    made = shared_powerlab("bundle", "create", sweep["sweep_id"][:8], "--output", path)
    assert made.returncode == 0, made.stderr
    assert shared_powerlab("report", sweep["sweep_id"][:8], "--output", page).returncode == 0
    assert "every figure is simulated" in (shared_powerlab.home / "sweep.html").read_text()

    verified = json.loads(shared_powerlab("bundle", "verify", path, "--json").stdout)
    assert verified["reproduced"]
    assert {one["id"] for one in verified["checked"]} > {run["id"] for run in sweep["runs"]}

    again = shared_powerlab("bundle", "rerun", path, "--json")
    assert again.returncode in {0, 1}, again.stderr
    assert "simulated board" in again.stderr
    compared = json.loads(again.stdout)
    assert compared["bundled_sweep_id"] == sweep["sweep_id"] != compared["sweep_id"]
    figures = {one["metric"]: one for one in compared["figures"]}
    assert figures["power_w"]["ratio"]["value"] == pytest.approx(1, rel=0.2)
    assert {one["agreement"] for one in compared["figures"]} <= {"agrees", "differs", "undecided"}
