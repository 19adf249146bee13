"""Starts and stops the process that moves a simulated board's sensors."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

_STOP_TIMEOUT_S = 10.0


@contextmanager
def running(directory: str | Path, temporary: bool = False) -> Iterator[Sysroot]:
    """Yield the sysroot of an existing tree while its simulator process runs; it has moved every sensor once by then.

    The simulator ends with this process, however that ends, and removes a ``temporary`` tree when this process was
    killed. Ctrl-C does not reach it: the run in progress may go on, and its sensors must not stand still.

    Raises:
        PowerlabError: the directory is not a simulated board.
    """
    command = [sys.executable, "-m", "powerlab.boards.simulator", "--with-parent", str(os.getpid())]
    process = subprocess.Popen(
        [*command, *["--temporary"] * temporary, str(directory)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if process.stdout is None or process.stdout.readline().strip() != "running":
            _, complaint = process.communicate(timeout=_STOP_TIMEOUT_S)
            words = complaint.strip().rpartition("\n")[2].removeprefix("powerlab: ")
            raise PowerlabError(words or f"the simulator of {directory} did not start; write the tree anew.")
        yield Sysroot(Path(directory))
    finally:
        process.terminate()
        process.communicate(timeout=_STOP_TIMEOUT_S)


@contextmanager
def simulated_board(board_name: str, jetpack: int | None = None) -> Iterator[Sysroot]:
    """Yield the sysroot of a temporary simulated board whose simulator process is running.

    Raises:
        PowerlabError: the board is not known or cannot be simulated.
    """
    with tempfile.TemporaryDirectory(prefix=f"powerlab-{board_name}-") as directory:
        create_tree(board_name, directory, jetpack)
        with running(directory, temporary=True) as sysroot:
            yield sysroot
