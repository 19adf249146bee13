from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from modes import programs_here
from powerlab.boards.simulator import create_tree
from powerlab.modes.controller import ModeController
from powerlab.modes.io import programs
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

BOOT_ID = "/proc/sys/kernel/random/boot_id"
WITH_PROCESSES = {"test_nvpmodel", "test_jetson_clocks", "test_kill", "test_lock", "test_programs", "test_delegation"}
"""Files whose tests are about the programs that knobs run, or about their processes: there each has a process."""


@pytest.fixture(autouse=True)
def _programs_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the programs of simulated boards run in this process elsewhere: reading a mode takes several."""
    if request.path.stem not in WITH_PROCESSES:
        monkeypatch.setattr(programs, "completed", programs_here.completed)


@pytest.fixture
def board(tmp_path: Path) -> Sysroot:
    """A simulated AGX Xavier without a simulator process: nothing moves but what a test moves."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    return Sysroot(tmp_path / "board")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def controller(board: Sysroot, state_dir: Path) -> ModeController:
    return ModeController(board, state_dir)


@pytest.fixture
def content_of() -> Callable[[Sysroot], dict[str, str]]:
    """Every file of a tree and what it holds, but for the lock, which stays behind empty of meaning."""

    def text_of(path: Path) -> str:
        return os.readlink(path) if path.is_symlink() else path.read_text(errors="replace")

    def content(sysroot: Sysroot) -> dict[str, str]:
        return {
            str(path.relative_to(sysroot.base)): text_of(path)
            for path in sorted(sysroot.base.rglob("*"))
            if (path.is_symlink() or path.is_file()) and "run/lock" not in str(path)
        }

    return content


@pytest.fixture
def put(board: Sysroot) -> Callable[[str, str], None]:
    """Writes a file of the board, as somebody else would."""

    def write(path: str, value: str) -> None:
        board.path(path).write_text(value + "\n")

    return write


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[[dict[str, str]], Sysroot]:
    """Makes a device of nothing but the files given, path to text; to powerlab it is a simulated board."""

    def make(files: dict[str, str]) -> Sysroot:
        sysroot = Sysroot(tmp_path / "tree")
        for path, text in (files | {SIMULATION_MARKER: "{}"}).items():
            sysroot.path(path).parent.mkdir(parents=True, exist_ok=True)
            sysroot.path(path).write_text(text + "\n")
        return sysroot

    return make
