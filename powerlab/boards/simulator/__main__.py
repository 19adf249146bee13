"""``python -m powerlab.boards.simulator DIR``: moves the sensors of a simulated board until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from powerlab.boards.simulator.loop import run
from powerlab.domain.errors import PowerlabError


def main() -> int:
    """Run until SIGTERM or SIGINT, or until the process that started it is gone."""
    parser = argparse.ArgumentParser(prog="python -m powerlab.boards.simulator", description=__doc__)
    parser.add_argument("directory", help="a tree written by `powerlab boards simulate NAME DIR`")
    parser.add_argument("--with-parent", action="store_true", help="stop when the process that started it is gone")
    args = parser.parse_args()
    stopping = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    parent = os.getppid()

    def going_on() -> bool:
        return not stopping and (not args.with_parent or os.getppid() == parent)

    try:
        run(args.directory, going_on, ready=lambda: _say("running"))
    except PowerlabError as error:
        sys.stderr.write(f"powerlab: {error}\n")
        return 2
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
