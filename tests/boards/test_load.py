from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.load import Load, busy_threads
from powerlab.sysroot import Sysroot

WORKER = """
import sys
from pathlib import Path
from powerlab.boards.simulator.load import Load
from powerlab.sysroot import Sysroot
load = Load(Sysroot(Path(sys.argv[1])))
load.publish(4)
print("busy", flush=True)
sys.stdin.readline()
"""


def worker(board: Sysroot) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(board.base)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    return process


def files(board: Sysroot) -> list[Path]:
    return list(board.path(layout.LOAD_DIRECTORY).iterdir())


def test_the_load_is_what_was_published_last(board: Sysroot) -> None:
    assert busy_threads(board) == 0
    with Load(board) as load:
        assert busy_threads(board) == 0
        for threads in (8, 1, 123456, 0, 2):
            load.publish(threads)
            assert busy_threads(board) == threads
    assert busy_threads(board) == 0
    assert files(board) == []


def test_closing_twice_is_harmless(board: Sysroot) -> None:
    load = Load(board)
    load.close()
    load.close()


def test_a_killed_worker_is_no_load_not_even_before_it_is_reaped(board: Sysroot) -> None:
    with worker(board) as process, Load(board) as ours:
        ours.publish(2)
        assert busy_threads(board) == 6
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert busy_threads(board) == 2, "it is a zombie now"
        process.wait()
        assert busy_threads(board) == 2
        assert [path.name for path in files(board)] == [str(os.getpid())]


def test_a_process_that_got_a_dead_workers_number_is_no_load(board: Sysroot) -> None:
    board.path(f"{layout.LOAD_DIRECTORY}/{os.getpid()}").write_text("8      12345\n")
    assert busy_threads(board) == 0
    assert files(board) == []


def test_a_file_that_is_being_written_is_no_load_yet(board: Sysroot) -> None:
    board.path(f"{layout.LOAD_DIRECTORY}/{os.getpid()}").write_text("")
    assert busy_threads(board) == 0
