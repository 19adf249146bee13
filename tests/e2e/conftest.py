"""The installed ``powerlab`` program, in a state directory of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from child_process import ChildProcess
from forked_program import run_forked

pytest.register_assert_rewrite("e2e.board_sweeps")

PROGRAM = Path(sys.executable).with_name("powerlab")


@dataclass(frozen=True)
class Powerlab:
    """Runs the program in ``home``; what it keeps lies in ``home/state``."""

    home: Path

    @property
    def state(self) -> Path:
        return self.home / "state"

    @property
    def environment(self) -> dict[str, str]:
        own = {"POWERLAB_STATE_DIR": str(self.state), "COLUMNS": "100"}
        return {name: value for name, value in os.environ.items() if not name.startswith("POWERLAB_")} | own

    def __call__(
        self, *words: str | Path, preexec_fn: Callable[[], object] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; with ``preexec_fn``, which limits a process before it starts, in a new Python."""
        if preexec_fn is None:
            return run_forked(["-m", "powerlab.cli", *words], self.home, self.environment)
        return subprocess.run(
            [PROGRAM, *map(str, words)],
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
            preexec_fn=preexec_fn,
        )

    @contextmanager
    def started(self, *words: str | Path) -> Iterator[subprocess.Popen[str]]:
        """A program that runs meanwhile; it is asked to end, as Ctrl-C does, where it has not."""
        with ChildProcess(
            [PROGRAM, *map(str, words)],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.terminate()
                process.communicate(timeout=60)


@pytest.fixture
def powerlab(tmp_path: Path) -> Powerlab:
    return Powerlab(tmp_path)


@pytest.fixture(scope="module")
def shared_powerlab(tmp_path_factory: pytest.TempPathFactory) -> Powerlab:
    """The same for tests that look at one result from many sides, or leave nothing behind."""
    return Powerlab(tmp_path_factory.mktemp("home"))


@pytest.fixture
def wait_while() -> Callable[[subprocess.Popen[str], Callable[[], object]], None]:
    """Waits until a condition holds; fails where the process that should bring it about ends first."""

    def wait(process: subprocess.Popen[str], holds: Callable[[], object]) -> None:
        while not holds():
            try:
                process.wait(timeout=0.01)
            except subprocess.TimeoutExpired:
                continue
            pytest.fail(f"it ended with {process.returncode} before that: {process.communicate()[1]}")

    return wait


@pytest.fixture
def workers_of() -> Callable[[subprocess.Popen[str]], list[psutil.Process]]:
    """The processes that run the engine for another one."""

    def is_worker(process: psutil.Process) -> bool:
        try:
            return "powerlab.measure.worker.main" in process.cmdline()
        except psutil.NoSuchProcess:
            return False

    return lambda process: [child for child in psutil.Process(process.pid).children() if is_worker(child)]
