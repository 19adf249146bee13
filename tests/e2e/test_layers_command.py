"""``powerlab layers`` as a user calls it."""

from __future__ import annotations

import json
import signal
import sqlite3

import pytest

from powerlab.cli import main
from small_network import write_small_network

pytestmark = pytest.mark.campaign(minutes=1)

QUICK = ("--threads", "1", "--seconds-per-layer", "0.15", "--idle", "0.5")


@pytest.fixture(scope="module")
def home(shared_powerlab):
    """A folder with a model, and a machine without any sensor."""
    write_small_network(shared_powerlab.home / "small.onnx")
    (shared_powerlab.home / "machine").mkdir()
    return shared_powerlab


@pytest.fixture(scope="module")
def on_a_board(home):
    """A profile of a simulated board, with every file that can be asked for."""
    files = ("--output", "out.json", "--trace", "trace.json", "--database", "kept.db")
    return home("layers", "small.onnx", *QUICK, "--board", "jetson-agx-xavier", *files)


@pytest.fixture(scope="module")
def without_sensors(home):
    """A profile of a machine on which no power can be read."""
    return home("layers", "small.onnx", *QUICK, "--sysroot", "machine", "--json", "--database", "none")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("resnet51",), "there is no model 'resnet51'"),
        (("nowhere.onnx",), "nowhere.onnx is not a model file"),
        (("small.onnx", "--threads", "4096"), "but the plan asks for 4096 threads; ask for at most"),
        (("small.onnx", "--threads", "0"), "the count of threads is 0; give at least 1"),
        (("small.onnx", "--threads", "two"), "'two' is not an integer"),
        (("small.onnx", "--batch", "0"), "the batch size is 0; give at least 1"),
        (("small.onnx", "--seconds-per-layer", "0"), "the duration is 0; give a time above 0 s"),
        (("small.onnx", "--seconds-per-layer", "long"), "'long' is not a number"),
        (("small.onnx", "--modes", "TURBO"), "has no power mode 'TURBO' that can be set now"),
        (("small.onnx", "--board", "jetson-agx-jupiter"), "jetson-agx-jupiter"),
        (("small.onnx", "--sysroot", "nowhere"), "--sysroot nowhere is not a directory"),
        (("small.onnx", "--output", "nowhere/out.json"), "cannot write --output nowhere/out.json"),
        (("small.onnx", "--trace", "nowhere/out.json"), "cannot write --trace nowhere/out.json"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(home, words, sentence, monkeypatch, capsys):
    monkeypatch.chdir(home.home)
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(home.state))
    assert main(["layers", *words]) == 2
    said = capsys.readouterr()
    assert sentence in said.err
    assert said.err.startswith("powerlab: ")
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


def test_it_says_beforehand_how_long_it_takes(on_a_board):
    first = " ".join(on_a_board.stderr.split())
    assert "layers and the whole in mode current: " in first
    assert "windows, about " in first
    assert "at most " in first


def test_the_table_has_every_layer_the_sum_and_the_whole(on_a_board):
    assert on_a_board.returncode in {0, 1}, on_a_board.stderr  # 1: a busy machine spoilt a window three times
    for words in ("first", "conv_direct", "sum of layers", "whole", "simulated", "W when idle", "No roofline: "):
        assert words in on_a_board.stdout


def test_the_document_has_every_figure_with_its_interval(on_a_board, home):
    (profile,) = json.loads((home.home / "out.json").read_text())["profiles"]
    assert profile["model"] == "small.onnx"
    assert len(profile["layers"]) == len(profile["roofline"])
    for layer in profile["layers"]:
        for figure in (layer["time"], layer["alone"], layer["power"], layer["energy"]):
            if figure is not None:
                assert figure["low"] <= figure["value"] <= figure["high"]
                assert figure["provenance"] == "simulated"


def test_the_trace_has_every_layer(on_a_board, home):
    events = json.loads((home.home / "trace.json").read_text())["traceEvents"]
    (profile,) = json.loads((home.home / "out.json").read_text())["profiles"]
    layers = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in layers] == [layer["name"] for layer in profile["layers"]]


def test_the_profile_is_kept(on_a_board, home):
    (profile,) = json.loads((home.home / "out.json").read_text())["profiles"]
    with sqlite3.connect(home.home / "kept.db") as database:
        assert database.execute("SELECT id FROM layer_profile").fetchall() == [(profile["id"],)]
    database.close()
    assert "1 of 1 profiles made, kept in kept.db." in on_a_board.stderr


def test_without_a_sensor_there_are_times_and_the_reason_and_no_zero(without_sensors):
    assert without_sensors.returncode == 0, without_sensors.stderr
    (profile,) = json.loads(without_sensors.stdout)["profiles"]
    assert "no power source can be read here" in profile["no_power"]
    assert profile["energy_ratio"] is None
    for layer in (*profile["layers"], profile["whole"], profile["total_of_layers"]):
        assert layer["time"]["value"] > 0
        assert layer["power"] is layer["energy"] is layer["above_idle"] is None
    assert sum(layer["share_percent"] for layer in profile["layers"]) == pytest.approx(100)


def test_a_real_machine_has_a_roof(without_sensors):
    (profile,) = json.loads(without_sensors.stdout)["profiles"]
    assert profile["roof"]["peak_gflops"] > 0
    assert profile["roof"]["memory_gb_per_s"] > 0
    assert all(point["percent_of_roof"] >= 0 for point in profile["roofline"])


def test_a_window_that_is_short_for_the_sensor_is_said_to_be(on_a_board):
    assert "the slowest sensor has a new value every " in on_a_board.stderr
    assert "so a layer wants " in on_a_board.stderr


def test_ctrl_c_ends_it_in_an_orderly_way(home):
    words = ("layers", "small.onnx", "--threads", "1", "--board", "jetson-agx-xavier", "--database", "none")
    with home.started(*words) as process:
        assert "small.onnx" not in process.stderr.readline()  # says how long it takes, and goes on
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "powerlab: interrupted; 0 of 1 profiles made." in errors
    assert "Traceback" not in errors
    assert "conv" not in output
