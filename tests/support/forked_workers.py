"""Workers that are forks: a new Python imports for a third of a second before it measures a tenth of one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO
from unittest.mock import patch

from forked_program import ForkedProgram
from powerlab.measure.worker import process


@contextmanager
def forked_workers() -> Iterator[None]:
    """Let the workers that this process starts meanwhile be forks; those of the programs that it starts are not."""
    with patch.object(process, "_start_pinned", _start_pinned):
        yield


def _start_pinned(reply_fd: int, output: IO[bytes], cores: frozenset[int], listeners: tuple[int, ...]) -> ForkedProgram:
    with ThreadPoolExecutor(max_workers=1) as thread:  # for good, so in a thread that ends; it may be refused
        thread.submit(os.sched_setaffinity, 0, cores).result()
    return ForkedProgram(
        ["-m", "powerlab.measure.worker.main", str(reply_fd)],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        pass_fds=(reply_fd, *listeners),
        cores=cores,
        start_new_session=True,
        text=False,
    )
