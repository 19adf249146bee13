"""A real sweep of a simulated board, audited, then damaged and audited again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import UUID

import pytest

SHORT = "--threads 1 --repeats 3 --duration 1 --warm-up 0.2 --longest-warm-up 0.2 --idle 1.5"


@pytest.fixture(scope="module")
def swept(shared_powerlab):
    """The program after a sweep over a board whose power is the sum of six rails."""
    done = shared_powerlab("profile", "mobilenetv2", "--board", "jetson-agx-xavier", *SHORT.split())
    assert done.returncode in {0, 1}, done.stderr
    return shared_powerlab


@pytest.fixture(scope="module")
def run_ids(swept) -> list[str]:
    return [one["id"] for one in json.loads(swept("runs", "list", "--json").stdout)]


@pytest.fixture(scope="module")
def whole_id(swept) -> str:
    """A run whose idle power was recorded after it, too; a busy machine may record too little of it."""
    with closing(sqlite3.connect(swept.state / "powerlab.db")) as database:
        return str(UUID(database.execute("SELECT run_id FROM trace_chunk WHERE part = 'idle-after'").fetchone()[0]))


@contextmanager
def changed(swept, *statements: str) -> Iterator[Path]:
    """A copy of the database in which something was changed."""
    copy = swept.home / "changed.db"
    shutil.copy(swept.state / "powerlab.db", copy)
    with closing(sqlite3.connect(copy)) as database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0
        database.commit()
    yield copy
    copy.unlink()


@pytest.mark.campaign(minutes=0.5)
def test_every_run_of_a_sweep_gives_itself_again(swept, run_ids):
    assert len(run_ids) == 3
    for run_id in run_ids:
        done = swept("audit", run_id)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "every stored value is confirmed" in done.stdout


def test_what_is_printed_says_it_all(swept, run_ids):
    done = swept("audit", run_ids[0][:8])
    for words in (
        run_ids[0],
        "Power while running",
        "budget",
        "MLPerf Power would reject this run",
        "power is simulated",
        "carrier board",
        "cannot be known here",
        "--duration",
    ):
        assert words in " ".join(done.stdout.split()), words
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stderr.startswith("source: database ")
    assert done.stderr.endswith(f", run {run_ids[0]}\n")


def test_machines_get_the_same_as_json(swept, run_ids):
    audit = json.loads(swept("audit", run_ids[0], "--json").stdout)
    assert audit["equal"] is True
    assert audit["mlperf_ruling"] == "rejected"
    assert audit["run"]["id"] == run_ids[0]
    assert all(one["equal"] for one in audit["compared"])
    assert audit["sample_count"] > 1000
    assert {one["ruling"] for one in audit["mlperf"]} == {"accepted", "rejected", "cannot be known here"}


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "UPDATE run_metric SET value = value * 1.01, high = high * 2 WHERE name = 'throughput_img_per_s'",
            "Throughput",
        ),
        ("UPDATE run SET verdict = 'failed'", "SHA-256 of the run"),
        ("UPDATE run SET inference_count = inference_count + 1", "inferences"),
        ("UPDATE rail SET relative_error = 0.0001", "Power while running"),
        ("UPDATE trace_chunk SET payload = zeroblob(100) WHERE part = 'run'", "damaged"),
        ("DELETE FROM trace_chunk WHERE part = 'idle-after'", "Idle power in the same mode"),
    ],
)
def test_a_damaged_record_is_caught(swept, whole_id, statement, words):
    with changed(swept, statement) as copy:
        done = swept("audit", whole_id, "--database", copy)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.startswith("source: database ")
    assert done.stderr.count("\n") == 1
    assert words in done.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nobody"], "there is no run 'nobody'"),
        (["sweep.ndjson"], "is a results file, which has no samples"),
        (["x", "--database", "nowhere.db"], "there is no database nowhere.db"),
        (["x", "--server", "http://127.0.0.1:1"], "no powerlab server answers"),
        ([], "RUN"),
    ],
)
def test_bad_input_is_one_sentence(swept, words, sentence):
    done = swept("audit", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
