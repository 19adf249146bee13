"""What was measured is kept when a worker dies and when the disk is full."""

from __future__ import annotations

import json
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign(minutes=2)

ONE_POINT = ("mobilenetv2", "--sysroot", "machine", "--threads", "1", "--warm-up", "0", "--idle", "0")


@pytest.fixture
def powerlab(powerlab):
    """A machine without sensors: its runs, all of them void, are a matter of milliseconds."""
    (powerlab.home / "machine").mkdir()
    return powerlab


def kept(powerlab) -> list[dict]:
    """The runs in the only results file."""
    (file,) = (powerlab.state / "sweeps").glob("*.ndjson")
    lines = [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]
    assert [line["kind"] for line in lines[:1]] in ([], ["sweep"]), "the first line, once it is there"
    return [line["run"] for line in lines[1:]]


def has_kept_one(powerlab) -> bool:
    return bool(list((powerlab.state / "sweeps").glob("*.ndjson"))) and bool(kept(powerlab))


def stored(powerlab, *words: str) -> list[dict]:
    done = powerlab("runs", "list", "--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_killed_worker_costs_its_own_run_alone(powerlab, wait_while, workers_of):
    board = ("--board", "jetson-agx-xavier", "--threads", "2", "--idle", "0.2", "--warm-up", "0.1")
    words = ("profile", "mobilenetv2", *board, "--repeats", "5", "--duration", "0.6")
    with powerlab.started(*words) as sweep:
        wait_while(sweep, lambda: has_kept_one(powerlab))
        wait_while(sweep, lambda: workers_of(sweep))
        workers_of(sweep)[0].kill()
        table, said = sweep.communicate(timeout=120)
    assert sweep.returncode == 1, said
    assert "was killed by SIGKILL" in table
    assert "5 of 5 runs finished" in said
    assert "Traceback" not in said
    (failed,) = [run for run in kept(powerlab) if run["verdict"] == "failed"]
    assert failed["findings"][0]["detail"].startswith("the worker was killed by SIGKILL")
    assert failed["metrics"] == []
    others = [run for run in kept(powerlab) if run["id"] != failed["id"]]
    assert [run["verdict"] in {"valid", "flagged"} for run in others] == [True] * 4, "exit code 1 is for the killed one"
    by_id = {run["id"]: run for run in stored(powerlab)}
    assert by_id == {run["id"]: run for run in kept(powerlab)}


def limited(file_bytes: int):
    """Let no file of a child grow beyond that: what a full disk looks like, also to root."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))


def size_of_a_run(powerlab) -> int:
    """Bytes of a results file's longest line; the run that this takes lies elsewhere."""
    other = type(powerlab)(powerlab.home / "other")
    (other.home / "machine").mkdir(parents=True)
    other("profile", *ONE_POINT, "--duration", "0.05", "--database", "none")
    (file,) = (other.state / "sweeps").glob("*.ndjson")
    return max(map(len, file.read_bytes().splitlines()))


def test_a_full_disk_ends_the_sweep_with_a_sentence_and_keeps_what_came_before(powerlab):
    limit = 3 * size_of_a_run(powerlab)
    words = ("profile", *ONE_POINT, "--duration", "0.05", "--repeats", "20", "--database", "none")
    done = powerlab(*words, preexec_fn=limited(limit))
    assert (done.returncode, done.stdout) == (2, "")
    sentence = done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert sentence.startswith("powerlab: the results file ")
    assert sentence.endswith("free some space, or set POWERLAB_STATE_DIR to a folder elsewhere.")
    assert 1 <= len(kept(powerlab)) < 20
    assert all(run["verdict"] != "failed" for run in kept(powerlab))
    (file,) = (powerlab.state / "sweeps").glob("*.ndjson")
    assert file.read_bytes().endswith(b"\n"), "the line that did not fit is taken back"


def make_database(powerlab) -> None:
    with powerlab.started("serve", "--port", "0", "--database", "runs.db") as server:
        server.stdout.readline()


def test_a_full_database_is_refused_before_anything_is_measured(powerlab):
    make_database(powerlab)
    room_to_open_it = limited(32768)
    done = powerlab("profile", *ONE_POINT, "--duration", "0.05", "--database", "runs.db", preexec_fn=room_to_open_it)
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("powerlab: the database runs.db cannot be written (")
    assert sentence.endswith("free some space, or give another --database.")


def test_a_database_that_breaks_meanwhile_is_told_once_and_the_results_file_goes_on(powerlab, wait_while):
    words = ("profile", *ONE_POINT, "--duration", "0.05", "--repeats", "5", "--database", "runs.db")
    with powerlab.started(*words) as sweep:
        wait_while(sweep, lambda: has_kept_one(powerlab))
        with closing(sqlite3.connect(powerlab.home / "runs.db")) as database:
            database.execute("DROP TABLE run")
        _, said = sweep.communicate(timeout=120)
    assert "5 of 5 runs finished" in said
    assert said.count("powerlab: the database runs.db takes no more of this sweep (no such table: run") == 1
    assert "Traceback" not in said
    assert len(kept(powerlab)) == 5


def test_a_results_folder_that_cannot_be_made_is_refused_before_anything_is_measured(powerlab):
    powerlab.state.write_text("a file where the folder should be\n")
    done = powerlab("profile", *ONE_POINT, "--duration", "0.05", "--database", "none")
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("powerlab: the results cannot be kept in ")
    assert sentence.endswith("set POWERLAB_STATE_DIR to a folder that can be written.")
    assert Path(powerlab.state).read_text() == "a file where the folder should be\n"
