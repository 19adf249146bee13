"""`powerlab calibrate` on simulated boards, whose sensors' lag their descriptions state."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from powerlab.boards.simulator import layout
from powerlab.cli import main
from powerlab.state_dir import VARIABLE

TICK_S = 0.01
"""A simulated board looks at its load so often."""
BUSY_S = 0.02
"""How much later a busy machine may do so."""


def true_lags_s(board: str) -> list[float]:
    """Return the lags of a board's power sensors, from the simulation's own description."""
    found = []

    def look(value: object) -> None:
        if isinstance(value, dict):
            if "update_period_s" in value:
                period_s = max(value["update_period_s"], TICK_S)
                found.append(value.get("lag_s", 0.0) + value.get("averaging_s", 0.0) / 2 + period_s / 2)
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(layout.simulation_of(board))
    return found


def calibrate(capsys, *words: str) -> SimpleNamespace:
    status = main(["calibrate", *words])
    captured = capsys.readouterr()
    return SimpleNamespace(status=status, out=captured.out, err=captured.err)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    "board",
    [
        "nvidia-grace",
        pytest.param("apm-xgene", marks=pytest.mark.campaign(minutes=1)),
        pytest.param("jetson-agx-orin", marks=pytest.mark.campaign(minutes=1)),
        pytest.param("jetson-orin-nano", marks=pytest.mark.campaign(minutes=1)),
    ],
)
def test_the_lag_of_a_simulated_boards_sensor_is_found_and_kept(capsys, state, board):
    (true_s, *others) = set(true_lags_s(board))
    assert not others
    made = calibrate(capsys, "--board", board, "--cycles", "5", "--json")
    assert made.status == 0, made.err
    found = json.loads(made.out)
    assert (found["board"], found["simulated"]) == (board, True)
    lags = [rail for rail in found["rails"] if rail["lag_s"] is not None]
    assert lags, "the processor's rail follows the load"
    for rail in lags:
        assert rail["rail"]["provenance"] == "simulated"
        assert abs(rail["lag_s"] - true_s) <= 3 * rail["lag_error_s"] + TICK_S + BUSY_S
    path = state / "calibrations" / f"simulated-{board}.json"
    assert json.loads(path.read_text()) == found
    assert str(path) in made.err
    forgotten = calibrate(capsys, "--board", board, "--forget")
    assert (forgotten.status, path.exists()) == (0, False)


@pytest.mark.campaign
def test_a_card_s_figures_are_calibrated_and_its_part_time_sensor_found(capsys, state):
    made = calibrate(capsys, "--board", "h100-workstation", "--processor", "gpu", "--cycles", "4", "--json")
    assert made.status == 0, made.err
    found = {rail["rail"]["name"]: rail for rail in json.loads(made.out)["rails"]}
    for name, window_s in (("GPU0", 0.025), ("GPU0 instant", 0.025), ("GPU0 average", 1.0)):
        rail = found[name]
        assert rail["update_period_s"] == pytest.approx(0.1, rel=0.1)
        assert abs(rail["averaging_s"] - window_s) <= 3 * rail["averaging_error_s"] + TICK_S
    assert found["package-0"]["lag_s"] is None


def test_without_a_power_source_one_sentence_says_so(capsys, state, tmp_path):
    (tmp_path / "empty").mkdir()
    made = calibrate(capsys, "--sysroot", str(tmp_path / "empty"))
    assert made.status == 2
    assert made.err == "powerlab: no power source can be read here; `powerlab doctor` says what to do.\n"
    assert not state.exists()


@pytest.mark.parametrize("cycles", ["0", "3", "-1", "201"])
def test_too_few_or_many_cycles_are_refused_before_anything_runs(capsys, state, cycles):
    made = calibrate(capsys, "--board", "nvidia-grace", f"--cycles={cycles}")
    assert made.status == 2
    assert f"invalid --cycles {cycles}: give 4 to 200" in made.err


def test_there_may_be_nothing_to_forget(capsys, state, tmp_path):
    made = calibrate(capsys, "--sysroot", str(tmp_path), "--forget")
    assert made.status == 0
    assert "no calibration is stored" in made.err


def test_an_unknown_board_is_a_sentence(capsys, state):
    made = calibrate(capsys, "--board", "nonesuch")
    assert made.status == 2
    assert "nonesuch" in made.err
