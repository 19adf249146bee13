"""A worker's peak memory is the process's own, and holds after the memory is given back."""

from __future__ import annotations

import subprocess
import sys

import pytest

from child_process import ChildProcess
from powerlab.measure.worker.memory import peak_memory_bytes
from recorded_run import recorded_run

ALLOCATE = "held = bytearray(b'x') * int({count}); held = None; print('done', flush=True); input()"


def peak_after(count: int) -> int:
    """Return the peak of a process that once held so many bytes, while it waits to be let go."""
    words = [sys.executable, "-S", "-c", ALLOCATE.format(count=count)]
    with ChildProcess(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        peak = peak_memory_bytes(process.pid)
        process.communicate(b"\n")
    assert peak is not None
    return peak


def test_the_peak_is_what_a_process_once_held_and_not_what_its_parent_holds():
    held = bytearray(b"x") * 300_000_000
    small, large = peak_after(1), peak_after(100_000_000)
    assert small < 100_000_000 < len(held)
    assert 95_000_000 < large - small < 110_000_000


def test_a_process_that_ended_has_no_peak():
    with ChildProcess([sys.executable, "-S", "-c", ""]) as process:
        process.wait()
    assert peak_memory_bytes(process.pid) is None


def test_a_run_says_it_in_millions_of_bytes():
    figure = recorded_run(peak_memory_bytes=123_456_000).run.metric("peak_memory_mb")
    assert figure is not None
    assert figure.value == pytest.approx(123.456)


def test_a_run_of_an_older_powerlab_lacks_it():
    assert recorded_run(peak_memory_bytes=None).run.metric("peak_memory_mb") is None
