"""How many threads a session has: what this process may use, by affinity mask and control group."""

import os

import numpy as np
import pytest

from engine_native.test_session import image, small_graph
from powerlab.cli import main
from powerlab.engine import Session, session
from powerlab.engine.target import cpus
from powerlab.engine.target.cpus import too_many, usable_cpus
from trees import write_tree


@pytest.fixture
def mask(monkeypatch):
    def set_mask(count):
        monkeypatch.setattr(cpus.os, "sched_getaffinity", lambda _pid: set(range(count)))

    return set_mask


@pytest.mark.parametrize(
    ("processors", "quota", "usable"),
    [
        (8, "max 100000", 8),
        (8, "300000 100000", 3),
        (8, "350000 100000", 3),
        (2, "300000 100000", 2),
        (4, "20000 100000", 1),
        (1, "max 100000", 1),
    ],
)
def test_the_mask_is_cut_down_to_the_whole_processors_of_the_quota(tmp_path, mask, processors, quota, usable):
    mask(processors)
    root = write_tree(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/job\n",
            "/sys/fs/cgroup/job/cpu.max": f"{quota}\n",
            "/sys/fs/cgroup/cgroup.controllers": "cpu",
        },
    )
    assert usable_cpus(root) == usable


def test_a_quota_of_version_1_counts_too(tmp_path, mask):
    mask(8)
    files = {"cpu.cfs_quota_us": "250000\n", "cpu.cfs_period_us": "100000\n"}
    assert usable_cpus(write_tree(tmp_path, {f"/sys/fs/cgroup/cpu/{name}": text for name, text in files.items()})) == 2


def test_a_session_has_as_many_threads_as_processors_unless_it_is_told(monkeypatch):
    for usable in (1, 3):
        monkeypatch.setattr(session, "usable_cpus", lambda count=usable: count)
        assert Session(small_graph()).threads == usable
        assert Session(small_graph(), threads=2).threads == 2


def test_a_session_keeps_to_a_mask_that_was_narrowed():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        narrow = Session(small_graph())
        narrow.run({"x": image()})
    finally:
        os.sched_setaffinity(0, allowed)
    assert narrow.threads == 1


def test_threads_that_share_a_processor_compute_the_same(monkeypatch):
    expected = Session(small_graph(), threads=1).run({"x": image()})["t1"]
    monkeypatch.setattr(session, "usable_cpus", lambda: 1)
    found = Session(small_graph(), threads=5).run({"x": image()})["t1"]
    assert found.tobytes() == expected.tobytes()


def test_too_many_threads_are_told_in_one_sentence():
    assert (too_many(1, 1), too_many(2, 4)) == ("", "")
    assert too_many(4, 2).startswith("4 threads share the 2 processors that this process may use")
    assert "the one processor" in too_many(2, 1)
    assert too_many(4, 2).count(".") == 1


def test_the_command_tells_of_too_many_threads(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("powerlab.engine.target.cpus.usable_cpus", lambda: 1)
    np.savez(tmp_path / "in.npz", x=np.zeros((1, 3, 32, 32), np.float32))
    files = ["--input", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    command = ["engine", "run", "squeezenet", *files, "--input-shape", "x=1x3x32x32"]
    assert main([*command, "--threads", "2"]) == 0
    assert "powerlab: 2 threads share the one processor" in capsys.readouterr().err
    assert main([*command, "--threads", "1"]) == 0
    assert capsys.readouterr().err == ""
