"""``python -m powerlab.boards.simulator DIR``: moves the sensors of a simulated board until it is told to stop."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys

from powerlab.boards.simulator.loop import run
from powerlab.domain.errors import PowerlabError


def main() -> int:
    """Run until SIGTERM or SIGINT, or until the process that started it is gone."""
    parser = argparse.ArgumentParser(prog="python -m powerlab.boards.simulator", description=__doc__)
    parser.add_argument("directory", help="a tree written by `powerlab boards simulate NAME DIR`")
    parser.add_argument("--with-parent", metavar="PID", type=int, help="stop when this parent process is gone")
    parser.add_argument("--temporary", action="store_true", help="remove the tree when the parent is gone")
    args = parser.parse_args()
    stopping = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)

    def orphaned() -> bool:
        return args.with_parent is not None and os.getppid() != args.with_parent

    def going_on() -> bool:
        return not stopping and not orphaned()

    try:
        run(args.directory, going_on, ready=lambda: _say("running"))
    except PowerlabError as error:
        sys.stderr.write(f"powerlab: {error}\n")
        return 2
    finally:
        # The parent removes its temporary tree itself; only one that was killed leaves that to this process.
        if args.temporary and orphaned():
            shutil.rmtree(args.directory, ignore_errors=True)
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
