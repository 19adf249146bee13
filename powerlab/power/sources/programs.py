"""Find and run a device's programs that report power."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.sysroot import Sysroot

_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program printed, its complaints too, and its exit status."""

    text: str
    status: int


def find_program(sysroot: Sysroot, name: str) -> str | None:
    """Return the path of a program as seen from inside the sysroot; None where it is not installed."""
    for directory in _DIRECTORIES:
        if sysroot.path(f"{directory}/{name}").is_file():
            return f"{directory}/{name}"
    return None


def run_program(sysroot: Sysroot, program: str, arguments: Sequence[str], timeout_s: float) -> Answer:
    """Run a program to its end, without standard input and without a language of its own.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it did not end in time; it is then killed. (A kind of OSError.)
    """
    try:
        done = subprocess.run(
            [str(sysroot.path(program)), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{program} did not end within {timeout_s:g} s") from None
    return Answer(done.stdout.decode("utf-8", "replace"), done.returncode)
