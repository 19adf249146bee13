"""The file of finished runs: whole lines whatever happens, and a full disk costs only the run that did not fit."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from powerlab.cli.stored.results_file import ResultsFile
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from server_examples import PLAN, device, make_run, runs_of


def kept(path: Path) -> list[Run]:
    first, *lines = path.read_bytes().splitlines(keepends=True)
    assert json.loads(first)["kind"] == "sweep"
    assert all(line.endswith(b"\n") for line in lines)
    return [msgspec.convert(json.loads(line)["run"], Run) for line in lines]


@pytest.fixture
def results(tmp_path):
    file = ResultsFile(tmp_path / "sweeps", "sweep-1", device(), PLAN)
    yield file
    file.close()


@pytest.fixture
def full_disk(monkeypatch):
    """Return a switch: while it is on, the disk refuses what was written only when it is synchronised."""
    on = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if on:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return on


def test_every_run_is_in_the_file_as_soon_as_it_is_added(results):
    runs = runs_of("sweep-1")
    for count, run in enumerate(runs, start=1):
        results.add(run)
        assert kept(results.path) == runs[:count]
    first = json.loads(results.path.read_text().splitlines()[0])
    assert first["sweep_id"] == "sweep-1"
    assert first["device"]["name"] == "board-1"
    assert first["plan"]["threads"] == [1, 2]


def test_a_sweep_without_a_run_leaves_no_file(tmp_path):
    file = ResultsFile(tmp_path, "sweep-1", device(), PLAN)
    assert file.path.exists()
    file.close()
    assert not file.path.exists()


def test_results_of_another_sweep_are_never_written_over(tmp_path):
    file = ResultsFile(tmp_path, "sweep-1", device(), PLAN)
    file.add(runs_of("sweep-1")[0])
    file.close()
    before = file.path.read_bytes()
    with pytest.raises(PowerlabError, match=r"cannot be kept in .* File exists"):
        ResultsFile(tmp_path, "sweep-1", device(), PLAN)
    assert file.path.read_bytes() == before


def test_a_run_that_does_not_fit_is_taken_back_and_the_next_one_follows_without_a_hole(results, full_disk):
    first, second, third = runs_of("sweep-1")[:3]
    results.add(first)
    full_disk.append(True)
    with pytest.raises(PowerlabError) as caught:
        results.add(second)
    assert str(caught.value).startswith(f"the results file {results.path} takes no more runs (No space left on device)")
    assert str(caught.value).endswith(".")
    assert kept(results.path) == [first]
    full_disk.clear()
    results.add(third)
    assert kept(results.path) == [first, third]


def test_a_disk_that_is_full_from_the_start_is_one_sentence_and_leaves_nothing(tmp_path, full_disk):
    full_disk.append(True)
    with pytest.raises(PowerlabError, match=r"cannot be kept in .* No space left on device; set POWERLAB_STATE_DIR"):
        ResultsFile(tmp_path, "sweep-1", device(), PLAN)
    assert list(tmp_path.iterdir()) == []


def test_a_line_cut_in_the_middle_by_a_limit_is_taken_back(tmp_path):
    """The kernel takes half a line and refuses the rest, as a full disk may."""
    limit = 20_000
    code = (
        f"import resource, sys; sys.path[:0] = {[str(Path(__file__).parents[1] / 'support')]!r}\n"
        "from pathlib import Path\n"
        "from server_examples import PLAN, device, runs_of\n"
        "from powerlab.cli.stored.results_file import ResultsFile\n"
        "from powerlab.domain.errors import PowerlabError\n"
        f"file = ResultsFile(Path({str(tmp_path)!r}), 'sweep-1', device(), PLAN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "try:\n"
        "    while True:\n"
        "        for run in runs_of('sweep-1'):\n"
        "            file.add(run)\n"
        "except PowerlabError as error:\n"
        "    print(error)\n"
        "file.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "takes no more runs (File too large)" in done.stdout
    path = tmp_path / "sweep-1.ndjson"
    line = len(msgspec.json.encode({"kind": "run", "run": make_run("sweep-1", PLAN.points()[0], 0)})) + 1
    assert limit - 2 * line < path.stat().st_size <= limit
    assert len(kept(path)) > 10
