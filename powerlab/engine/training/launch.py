"""Start a program that trains in several processes, by MPI, and tell in a sentence which one ended them.

    python -m powerlab.engine.training.launch --processes 2 program.py ARGUMENT ...

The exit status is 2 where a process fails or dies; MPI ends the others then, since they would wait for it forever.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from textwrap import shorten

from powerlab.domain.errors import PowerlabError
from powerlab.engine.training.together import ELSEWHERE

EXIT_INVALID = 2
_KILLED = re.compile(r"process rank (\d+) with PID \d+ on node (\S+) exited on signal (\d+) \(([^)]*)\)")
_FAILED = re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code: +(\d+)")
_ROOT = "attempt to run as root"
"""What Open MPI's mpirun says at the end, as of version 4, or at once to root."""


def run_together(program: Sequence[str], processes: int, *, options: Sequence[str] = ()) -> None:
    """Run a Python program in several processes that can make an ``MpiGroup``, and wait for their end.

    What they write goes where this process writes.

    Args:
        program: its path and arguments.
        processes: how many.
        options: more words for mpirun, such as ``--hostfile FILE``.

    Raises:
        PowerlabError: there is no MPI, or a process failed or died; names it.
    """
    if processes < 1:
        raise PowerlabError(f"training needs 1 process or more, not {processes}.")
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise PowerlabError("there is no mpirun here; on Debian: apt install openmpi-bin.")
    command = [mpirun, *options, "-n", str(processes), sys.executable, "-m", "mpi4py", *program]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode == 0:
        sys.stderr.write(done.stderr)
        return
    raise PowerlabError(_reason(done.stderr, done.returncode, processes))


def _reason(said: str, status: int, processes: int) -> str:
    """Return the sentence about what mpirun said."""
    if killed := _KILLED.search(said):
        rank, node, signal, name = killed.groups()
        return (
            f"process {rank} of {processes} on {node} was ended by signal {signal} ({name}), so all were; look whether "
            "it ran out of memory there, and start the training again."
        )
    if failed := _FAILED.search(said):
        rank, code = failed.groups()
        errors = [line.strip() for line in said.splitlines() if re.match(r"\S*(Error|Exception)\b", line)]
        causes = [line for line in errors if ELSEWHERE not in line]
        # Where one process tells of another, mpirun names the one that was quicker to end, which may be either.
        which = f"process {rank} of {processes}" if causes == errors else f"one of {processes} processes"
        told = f": {(causes or errors)[0].rstrip('.')}" if errors else ""
        return f"{which} failed with exit status {code}{told}; mend that and start them again."
    if _ROOT in said:
        return (
            "Open MPI does not start as root; start it as another user, or, in a container, set "
            "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1."
        )
    words = " ".join(line.strip() for line in said.splitlines() if line.strip("- "))
    return f"mpirun failed with exit status {status}: {shorten(words, 300, placeholder=' ...') or 'it says nothing.'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and run; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m powerlab.engine.training.launch", description=__doc__)
    parser.add_argument("--processes", type=int, required=True, metavar="N")
    parser.add_argument("--mpirun-options", default="", metavar="WORDS", help="more words for mpirun")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="PROGRAM ARGUMENT ...")
    asked = parser.parse_args(arguments)
    if not asked.program:
        parser.error("name the program")
    try:
        run_together(asked.program, asked.processes, options=asked.mpirun_options.split())
    except PowerlabError as error:
        sys.stderr.write(f"powerlab: {error}\n")
        return EXIT_INVALID
    return 0


if __name__ == "__main__":
    sys.exit(main())
