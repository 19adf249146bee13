"""``powerlab profile`` as a user meets it: exit codes, sentences, kept results, and a whole simulated board."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from child_process import ChildProcess
from powerlab.boards.simulator import create_tree
from powerlab.cli import main
from powerlab.cli.process.interrupts import orderly_ends, uninterrupted
from powerlab.domain.quantity import Provenance
from powerlab.store import open_store
from powerlab.store.reads import queries
from powerlab.sysroot import Sysroot

QUICK = ["--duration", "0.05", "--warm-up", "0", "--idle", "0", "--threads", "1"]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "powerlab"


@pytest.fixture
def machine(tmp_path: Path) -> str:
    """A machine without any sensor."""
    (tmp_path / "machine").mkdir()
    return str(tmp_path / "machine")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--threads", "4096"], "but the plan asks for 4096 threads; ask for at most"),
        (["--threads", "two"], "invalid --threads value 'two': give an integer from 1 on"),
        (["--duration", "long"], "invalid --duration value 'long': give a number."),
        (["--modes", "turbo"], "no power mode 'turbo' that can be set now; choose from: current"),
        (["--repeats", "1"], "1 repeats cannot show the scatter between runs; ask for at least 3."),
        (["--batch", "0"], "invalid --batch value '0': give at least 1."),
        (["--until", "1%"], "--until 1% is about img/s/W, and no power source can be read here; leave it out"),
        (["--until", "-1"], "the width that --until asks for is -1; give a percentage above 0."),
        (["--rigour", "publishable"], "the plan calls itself publishable, but the duration is 0.05 s, not 600 s;"),
        (["--engine", "abacus"], "the engine 'abacus' is not known; choose one of:"),
        (["--database", "/proc/no/such/place.db"], "cannot be written"),
        (["--output", "/proc/no/such/file.json"], "cannot write --output /proc/no/such/file.json"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(machine, numpy_engine, capsys, words, sentence):
    arguments = ["profile", "good", "--sysroot", machine, "--engine", numpy_engine, *QUICK, *words]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err.strip().splitlines()[-1]
    assert last.startswith("powerlab: ")
    assert sentence in " ".join(captured.err.split())
    assert "Traceback" not in captured.err


def test_a_name_that_no_model_has_is_refused_and_leaves_no_sweep(machine, state, capsys):
    assert main(["profile", "no-such-model", "--sysroot", machine, *QUICK]) == 2
    assert "no-such-model" in capsys.readouterr().err
    assert not list(state.glob("sweeps/*"))
    assert not (state / "powerlab.db").exists()


@pytest.mark.parametrize("content", [None, b"no model"])
def test_a_model_that_cannot_be_read_is_refused_before_anything_is_measured(machine, state, tmp_path, capsys, content):
    path = tmp_path / "broken.onnx"
    if content is not None:
        path.write_bytes(content)
    assert main(["profile", str(path), "--sysroot", machine, *QUICK]) == 2
    assert "broken.onnx" in capsys.readouterr().err
    assert not list(state.glob("sweeps/*"))
    store = open_store(state / "powerlab.db")
    with store.session() as session:
        (sweep,) = queries.list_sweeps(session)
    store.close()
    assert sweep.state == "failed"
    assert "broken.onnx" in sweep.detail


def test_a_sysroot_that_is_no_directory_is_refused(capsys):
    assert main(["profile", "resnet50", "--sysroot", "/no/such/dir"]) == 2
    assert "--sysroot /no/such/dir is not a directory" in capsys.readouterr().err


def test_an_unknown_board_is_refused(capsys):
    assert main(["profile", "resnet50", "--board", "toaster"]) == 2
    assert "toaster" in capsys.readouterr().err


def test_a_crashing_model_leaves_the_others_results_and_exit_code_1(machine, numpy_engine, state, capsys):
    arguments = [
        "profile",
        "crash",
        "good",
        "--sysroot",
        machine,
        "--engine",
        numpy_engine,
        "--database",
        "none",
        *QUICK,
    ]
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert "ended with exit code 3" in captured.out
    (file,) = (state / "sweeps").glob("*.ndjson")
    first, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert first["kind"] == "sweep"
    assert first["plan"]["models"] == ["crash", "good"]
    verdicts = [(line["run"]["point"]["workload"]["model"], line["run"]["verdict"] == "failed") for line in lines]
    assert sorted(verdicts) == [("crash", True)] * 3 + [("good", False)] * 3


def test_times_too_short_for_the_sensor_are_told_before_the_first_run(machine, numpy_engine, capsys):
    chip = Path(machine) / "sys/class/hwmon/hwmon0"
    chip.mkdir(parents=True)
    for name, text in {"name": "apm_xgene", "power1_label": "CPU power", "power1_input": "22040000"}.items():
        (chip / name).write_text(f"{text}\n")
    main(["profile", "good", "--sysroot", machine, "--engine", numpy_engine, "--database", "none", *QUICK])
    told = " ".join(capsys.readouterr().err.split())
    assert "hwmon:CPU power has a new value every 0.01 s and 20 of them are wanted" in told
    assert "runs of 0.05 s will be flagged as too short; ask for at least 0.3 s." in told


def test_json_is_one_document_and_output_holds_the_same(machine, numpy_engine, tmp_path, capsys):
    output = tmp_path / "sweep.json"
    arguments = ["profile", "good", "--sysroot", machine, "--engine", numpy_engine, "--database", "none", *QUICK]
    main([*arguments, "--json", "--output", str(output)])
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(output.read_text())
    assert set(document) == {"sweep_id", "device", "plan", "runs", "summaries", "best", "pareto_front"}
    assert [run["repeat"] for run in document["runs"]] == [0, 1, 2]
    (summary,) = document["summaries"]
    assert summary["run_count"] == 3
    assert {best["goal"] for best in document["best"]} >= {"latency", "throughput"}


@pytest.mark.campaign(minutes=1)
def test_a_search_of_a_simulated_board_finds_its_most_efficient_point_and_stops(tmp_path, capsys):
    output = tmp_path / "sweep.json"
    words = ["profile", "squeezenet", "--board", "jetson-orin-nano", "--threads", "1,2,4", "--batch", "1,2"]
    modes = ["--modes", "15W,cores=4", "--search", "--goal", "efficiency", "--propose-modes", "--search-epsilon", "5%"]
    times = ["--duration", "0.4", "--warm-up", "0.1", "--idle", "0.3", "--min-inferences", "3", "--database", "none"]
    main([*words, *modes, *times, "--output", str(output)])
    told = capsys.readouterr()
    assert "stopped because no other point is likely to be more than 5 % better in efficiency" in " ".join(
        told.err.split()
    )
    document = json.loads(output.read_text())
    plan = document["plan"]
    assert plan["search_percent"] == 5.0
    assert "cpu-max=883200kHz+gpu-max=306000000Hz" in plan["proposed_modes"]
    assert len(document["runs"]) < 0.4 * 3 * len(plan["modes"]) * 6
    (best,) = [one for one in document["best"] if one["goal"] == "efficiency"]
    points = {run["point"]["threads"] for run in document["runs"] if run["sweep_id"] == document["sweep_id"]}
    assert 4 in points
    assert best["metric"]["value"] > 9.0  # 10.8 img/s/W with four threads; 4.5 with one
    assert "points measured" in told.out
    assert "(proposed)" in told.out


ENDS = [
    signal.SIGINT,
    pytest.param(signal.SIGTERM, marks=pytest.mark.campaign),
    pytest.param(signal.SIGHUP, marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.name)
def test_ctrl_c_and_its_like_keep_what_was_measured(machine, numpy_engine, state, end):
    words = ["profile", "good", "--sysroot", machine, "--engine", numpy_engine, "--database", "none", *QUICK]
    code = (
        "import sys\n"
        "from powerlab.backends import registry\n"
        "registry.BACKENDS['numpy'] = 'numpy_backend'\n"
        "from powerlab.cli import main\n"
        f"sys.exit(main({[*words, '--repeats', '1000']!r}))\n"
    )
    with ChildProcess(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        while process.poll() is None and not _kept(state):
            os.sched_yield()
        process.send_signal(end)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert "Best latency" in out
    assert _kept(state)


def test_ctrl_c_is_held_back_while_results_are_kept():
    kept = []

    def keep() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            kept.append("written to the end")

    with pytest.raises(KeyboardInterrupt):
        keep()
    assert kept
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_closed_connection_puts_the_power_mode_back(tmp_path, numpy_engine):
    """SIGHUP in the middle of a mode: the board is what it was before, and no journal waits for the next command."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    board = Sysroot(tmp_path / "board")
    words = ["profile", "good", "--sysroot", str(board.base), "--engine", numpy_engine, "--database", "none", *QUICK]
    code = (
        "import sys\n"
        "from powerlab.backends import registry\n"
        "registry.BACKENDS['numpy'] = 'numpy_backend'\n"
        "from powerlab.cli import main\n"
        f"sys.exit(main({[*words, '--modes', 'MODE_15W', '--repeats', '1000']!r}))\n"
    )
    with ChildProcess([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and "pmode:0002" not in board.read("/var/lib/nvpmodel/status"):
            os.sched_yield()
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert board.read("/var/lib/nvpmodel/status") == "pmode:0000"
    assert board.read("/sys/devices/system/cpu/cpu7/online") == "1"


def test_a_signal_that_is_ignored_stays_ignored_and_all_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    hung_up = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly_ends():
            signal.raise_signal(signal.SIGHUP)
            with pytest.raises(KeyboardInterrupt), uninterrupted():
                signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, hung_up)
    assert signal.getsignal(signal.SIGTERM) is before


def _kept(state: Path) -> list[str]:
    files = list(state.glob("sweeps/*.ndjson"))
    return files[0].read_text().splitlines()[1:] if files else []


@pytest.mark.campaign
def test_a_simulated_xavier_from_the_command_to_the_database(tmp_path, capsys):
    """The whole main job on a simulated board: real engine, rails, modes, intervals, provenance, storage."""
    database = tmp_path / "bench.db"
    words = ["mobilenetv2", "--board", "jetson-agx-xavier", "--modes", "MAXN,MODE_15W", "--threads", "2"]
    times = ["--duration", "0.5", "--warm-up", "0.1", "--idle", "0.3"]
    assert main(["profile", *words, *times, "--database", str(database), "--json"]) in {0, 1}
    document = json.loads(capsys.readouterr().out)
    assert document["device"]["board"] == "jetson-agx-xavier"
    assert document["device"]["core_count"] == 8
    assert len(document["runs"]) == 6
    for run in document["runs"]:
        assert run["verdict"] != "failed", run["findings"]
        assert {metric["provenance"] for metric in run["metrics"]} == {"simulated"}
    by_mode = {summary["point"]["mode"]: summary for summary in document["summaries"]}
    watts = {mode: _value(summary, "power_w") for mode, summary in by_mode.items()}
    assert 1 < watts["MODE_15W"] < watts["MAXN"] < 60
    # The best repeat of each: what else runs on this machine only makes one slower, sometimes much.
    quickest = {
        mode: min(_value(run, "latency_p50_ms") for run in document["runs"] if run["point"]["mode"] == mode)
        for mode in by_mode
    }
    assert quickest["MAXN"] < quickest["MODE_15W"]
    assert {best["goal"] for best in document["best"]} == {"latency", "throughput", "efficiency"}

    store = open_store(database)
    with store.session() as session:
        (sweep,) = queries.list_sweeps(session)
        runs = queries.runs_of_sweep(session, sweep.id)
        traces = queries.power_traces(session, runs[0].id)
    store.close()
    assert (sweep.state, sweep.simulated, sweep.stored_run_count) == ("done", True, 6)
    assert sorted(run.id for run in runs) == sorted(run["id"] for run in document["runs"])
    assert {trace.rail.key for trace in traces} == set(runs[0].total.rails)
    assert len(traces) == 6
    assert all(trace.rail.provenance is Provenance.SIMULATED for trace in traces)


def _value(summary: dict, name: str) -> float:
    return next(metric["value"] for metric in summary["metrics"] if metric["name"] == name)
