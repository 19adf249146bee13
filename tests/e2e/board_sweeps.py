"""A whole sweep over a simulated board, and what the board says of itself against its golden file: the checks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from e2e.golden_boards import AT_RELEASES, GOLDEN, ON_GPU, described, simulated
from powerlab.boards.registry import BOARDS

SHORT = "--threads 1 --repeats 3 --duration 1 --warm-up 0.2 --longest-warm-up 1 --idle 0.5 --database none --json"
BUSY = {"power-gap", "stale-sensor", "missing-power"}
"""What a machine that is too busy does to a sweep: sensors are read late, and simulated ones are moved late."""
KNOWN_FINDINGS = {
    *("background-load", "too-few-samples", "window-too-short", "throttled", "power-gap"),
    *("missing-idle", "stalled", "unsteady", "sampling-load"),
    # A simulated counter that is moved late catches up at once, which looks like a slip of its sensor.
    *("stale-sensor", "implausible-power", "idle-drift"),
}
"""What a short sweep on a busy machine may bring about."""


def swept(some: Sequence[str]) -> Any:
    """Return the fixture ``board`` for some of the boards; several files share them, so that they run side by side."""

    marks = {one: [pytest.mark.campaign(minutes=3), *[pytest.mark.release][: one in AT_RELEASES]] for one in some}
    params = [pytest.param(one, marks=marks[one]) for one in some]

    @pytest.fixture(scope="module", params=params)
    def board(request, tmp_path_factory, shared_powerlab) -> dict[str, Any]:
        """What the doctor said, and a sweep over the board as it is and with its slowest CPU cap."""
        directory = tmp_path_factory.mktemp("board")
        with simulated(request.param, directory) as tree:
            doctor = json.loads(shared_powerlab("doctor", "--sysroot", tree, "--json").stdout)
            before = settings_of(tree)
            on_gpu = request.param == ON_GPU
            cap = "gpu-lock=" if on_gpu else "cpu-max="
            caps = [mode["name"] for mode in doctor["modes"] if mode["name"].startswith(cap)]
            slow = caps[-1] if on_gpu else caps[0]
            work = ["resnet50", "--batch", "16", "--processor", "gpu"] if on_gpu else ["mobilenetv2"]
            words = [*work, "--sysroot", tree, "--modes", f"current,{slow}", *SHORT.split()]
            sweep = measured(shared_powerlab, words)
            after = settings_of(tree)
        return {
            "variant": request.param,
            "doctor": doctor,
            "sweep": sweep,
            "slow": slow,
            "before": before,
            "after": after,
        }

    return board


def measured(powerlab, words: list[str]) -> dict[str, Any]:
    """A sweep as JSON; again where all that voided a run was this machine being too busy to read the sensors."""
    for _ in range(3):
        done = powerlab("profile", *words)
        assert done.returncode in {0, 1}, done.stderr
        sweep: dict[str, Any] = json.loads(done.stdout)
        void = {one["rule"] for run in sweep["runs"] for one in run["findings"] if one["verdict"] == "void"}
        if not void:
            return sweep
        assert void <= BUSY, done.stdout
    pytest.fail("three sweeps in a row had a run that was void because this machine was busy")


def settings_of(tree: Path) -> dict[str, str]:
    """Every file under /sys that a knob may write, with its text."""
    patterns = ("scaling_m*_freq", "scaling_governor", "online", "*power_limit_uw", "m*_freq", "platform_profile")
    return {
        str(path.relative_to(tree)): path.read_text()
        for pattern in patterns
        for path in sorted((tree / "sys").rglob(pattern))
        if path.is_file() and not path.is_symlink()
    }


def by_mode(sweep: dict[str, Any], metric: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for run in sweep["runs"]:
        found.setdefault(run["point"]["mode"], []).extend(
            one["value"] for one in run["metrics"] if one["name"] == metric
        )
    return found


def check_the_board_says_of_itself_what_its_golden_file_says(board):
    golden = json.loads((GOLDEN / f"{board['variant']}.json").read_text())
    assert described(board["doctor"]) == golden


def check_every_run_has_all_figures_and_all_are_simulated(board):
    runs = board["sweep"]["runs"]
    assert len(runs) == 6
    for run in runs:
        assert run["verdict"] in {"valid", "flagged"}, run["findings"]
        names = {metric["name"] for metric in run["metrics"]}
        assert {"power_w", "energy_per_image_j", "throughput_img_per_s", "idle_power_w"} <= names
        assert {metric["provenance"] for metric in run["metrics"]} == {"simulated"}
        assert {finding["rule"] for finding in run["findings"]} <= KNOWN_FINDINGS


def check_power_is_the_boards_own_formula(board):
    """The total is what the board's file says; a star in it stands for the rails that are there."""
    name = board["variant"].partition("@")[0]
    own = BOARDS[name].total
    assert own is not None
    for run in board["sweep"]["runs"]:
        assert not run["total"]["proposed"]
        assert run["total"]["scope"] == own.scope
        assert run["total"]["rails"] == board["doctor"]["total"]["rails"]


def check_the_capped_board_is_slower(board):
    throughput = by_mode(board["sweep"], "throughput_img_per_s")
    assert max(throughput[board["slow"]]) < max(throughput["current"])


def check_the_capped_board_takes_less(board):
    power = by_mode(board["sweep"], "power_w")
    assert min(power[board["slow"]]) < min(power["current"])


def check_the_board_is_left_as_it_was(board):
    assert board["after"] == board["before"]
    assert board["before"], "there is something that could have been changed"
