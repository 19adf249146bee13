"""Kills a process that sets a mode before, during and after every step that reaches the disk or the device.

Run as ``python kill_every_step.py BOARD_DIR STATE_DIR SCENARIO MODE``. Every system call through which the code under
test changes anything is counted; a child of this process is killed by SIGKILL at the n-th, for n = 0, 1, ... until it
comes to its end. After each death a new controller recovers, twice, and the board is compared with what it was. One
JSON line a death: the step, what is different, what the second recovery still found to write.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.modes.controller import ModeController
from powerlab.sysroot import Sysroot

COUNTED = ("write", "pwrite", "ftruncate", "fsync", "replace", "unlink")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Dies at the n-th step; says on a pipe which one it was."""

    def __init__(self, left: int, report: int, write: Callable[[int, bytes], int]) -> None:
        self.left, self.report, self.write = left, report, write

    def step(self, name: str, last_deed: Callable[[], object] = lambda: None) -> None:
        if self.left == 0:
            self.write(self.report, name.encode())
            last_deed()
            die()
        self.left -= 1


def arm(countdown: Countdown) -> None:
    """Put a step before each counted call, and two around and one in the middle of each run of nvpmodel."""
    for name in COUNTED:
        real = getattr(os, name)

        def counted(*args: Any, _real: Any = real, _name: str = name) -> Any:
            countdown.step(_name)
            return _real(*args)

        setattr(os, name, counted)
    real_run, real_popen = subprocess.run, subprocess.Popen

    def run(arguments: list[str], **options: Any) -> Any:
        if arguments[1] != "-m":
            return real_run(arguments, **options)
        countdown.step("before nvpmodel -m")
        start = {key: value for key, value in options.items() if key not in {"timeout", "check"}}
        # The orphan is slow, so that a recovery that did not wait for it would be overtaken.
        slowly = ["/bin/sh", "-c", 'sleep 0.3; exec "$@"', "slowly", *arguments]
        countdown.step("while nvpmodel -m runs", lambda: real_popen(slowly, **start))
        return real_run(arguments, **options)

    subprocess.run = run  # type: ignore[assignment]


def act(controller: ModeController, scenario: str, mode: str) -> None:
    if scenario == "applied":
        with controller.applied(mode):
            pass
    elif scenario == "set":
        controller.set(mode)
    elif scenario == "restore":
        controller.restore()
    else:
        raise ValueError(scenario)


def content(tree: Path) -> dict[str, str]:
    return {
        str(path.relative_to(tree)): path.read_text()
        for path in sorted(tree.rglob("*"))
        if path.is_file() and not path.is_symlink() and "run/lock" not in str(path)
    }


def killed_at(step: int, tree: Path, state: Path, scenario: str, mode: str) -> tuple[str | None, int]:
    """Return the name of the step a child was killed at, None where it came to its end; and a pipe.

    The pipe ends when the last program that the child started has ended.
    """
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    pid = os.fork()
    if pid == 0:
        arm(Countdown(step, writer, os.write))
        act(ModeController(Sysroot(tree), state), scenario, mode)
        os._exit(0)
    os.close(writer)
    name = os.read(reader, 100).decode()
    _, status = os.waitpid(pid, 0)
    if os.WIFEXITED(status):
        if os.WEXITSTATUS(status) != 0:
            raise RuntimeError("the child failed")
        return None, reader
    return name, reader


def main(board: Path, state: Path, scenario: str, mode: str) -> None:
    before = content(board)
    tree = board.with_suffix(".work")
    for step in itertools.count():
        shutil.rmtree(tree, ignore_errors=True)
        shutil.rmtree(state, ignore_errors=True)
        shutil.copytree(board, tree, symlinks=True)
        if scenario == "restore":
            ModeController(Sysroot(tree), state).set(mode)
        name, orphans = killed_at(step, tree, state, scenario, mode)
        errors, second = [], 0
        try:
            for attempt in range(2):
                undo = ModeController(Sysroot(tree), state)
                written = undo.recover() if scenario == "applied" else undo.restore()
                second = len(written) if attempt else 0
        except PowerlabError as error:
            errors.append(str(error))
        while os.read(orphans, 100):
            pass
        os.close(orphans)
        after = content(tree)
        different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
        death = {"step": step, "name": name, "different": different, "second": second, "errors": errors}
        sys.stdout.write(json.dumps(death) + "\n")
        if name is None:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
