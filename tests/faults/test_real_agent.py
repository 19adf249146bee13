"""A whole agent, ``powerlab agent run``, on a simulated board whose sensors move: killed anywhere, its clock set."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from child_process import ChildProcess
from faults.lives import NEVER, Shim
from powerlab.boards.simulator.process import running
from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.modes.controller import ModeController
from powerlab.protocol.messages import EnrolmentCode
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.sysroot import Sysroot
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, load_identity

pytestmark = pytest.mark.campaign(minutes=1)

KILLS = int(os.environ.get("POWERLAB_FAULT_REAL_KILLS", "1"))
MODE = "MODE_15W"
DAY_NS = 24 * 3600 * 10**9
PLAN = SweepPlan(
    models=("squeezenet",),
    threads=(1,),
    modes=(MODE,),
    duration_s=0.2,
    min_inferences=1,
    warm_up_s=0.0,
    longest_warm_up_s=0.1,
    idle_s=0.0,
)
_SETTINGS = (
    "scaling_governor",
    "scaling_min_freq",
    "scaling_max_freq",
    "online",
    "emc_iso_cap",
    "max_freq",
    "min_freq",
)


@dataclass
class Board:
    """A simulated board with an agent's state."""

    sysroot: Sysroot
    state: Path
    identity: Identity
    before: dict[str, str] = field(default_factory=dict)
    clock_runs: list[Run] = field(default_factory=list)

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "powerlab.cli", "agent", "run", "--once", "--state", str(self.state)]

    def run(self, environment: Mapping[str, str] | None = None) -> int:
        with (self.state / "log").open("a") as log:
            return subprocess.run(self.command, env=environment, stderr=log, timeout=240, check=False).returncode

    def settings(self) -> dict[str, str]:
        """Return what every knob of the board is set to."""
        files = (path for path in self.sysroot.base.rglob("*") if path.name in _SETTINGS and path.is_file())
        return {str(path): path.read_text().strip() for path in files}

    def finish(self, stored: Store, sweep_id: str) -> None:
        for _ in range(20):
            assert self.run() == 0, (self.state / "log").read_text()
            with stored.session() as session:
                if queries.sweep(session, sweep_id).state is SweepState.DONE:
                    return
            time.sleep(0.2)
        raise AssertionError(f"the sweep is stuck: {(self.state / 'log').read_text()}")

    def check(self, stored: Store, sweep_id: str) -> list[Run]:
        """One result a run, and the board as it was."""
        with stored.session() as session:
            runs = queries.runs_of_sweep(session, sweep_id)
            assert all(queries.power_traces(session, run.id) for run in runs if run.metrics)
        assert sorted(run.repeat for run in runs) == list(range(PLAN.repeats))
        assert self.settings() == self.before
        assert ModeController(self.sysroot, self.sysroot.path("/var/lib/powerlab")).unrestored() is None
        with closing(Spool(self.state / "spool.db")) as spool:
            assert (spool.next(), spool.held()) == (None, None)
        return runs


@pytest.fixture(scope="module")
def board(server: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("board")
    create_tree("jetson-agx-xavier", folder / "tree")
    with running(folder / "tree") as sysroot:
        code = server.post("/enrolment-codes", {}, EnrolmentCode).code
        words = ["agent", "enrol", "--server", server.url, "--code", code, "--name", "board", "--sysroot"]
        command = [sys.executable, "-m", "powerlab.cli", *words, str(sysroot.base), "--state", str(folder / "state")]
        subprocess.run(command, check=True, capture_output=True)
        board = Board(sysroot, folder / "state", load_identity(folder / "state"))
        board.before = board.settings()
        yield board


def set_clock(file: Path, shift_ns: int) -> None:
    """Shift the agent's wall clock; in place, for the agent has the file mapped and must not find it empty."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT)
    os.pwrite(handle, struct.pack("=q", shift_ns), 0)
    os.close(handle)


@pytest.fixture(scope="module")
def calls(server: Any, stored: Store, shim: Shim, board: Board, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Carry out a sweep whose agent's wall clock is set a day back, then a year ahead, while it measures.

    Returns:
        how many calls that took.
    """
    folder = tmp_path_factory.mktemp("clock")
    clock, report = folder / "clock", folder / "report"
    set_clock(clock, 0)
    sweep_id = server.create_sweep(board.identity, PLAN)
    environment = shim.environment(kill_at=NEVER, report=report, clock=clock)
    log, jumps = [], iter((-DAY_NS, 365 * DAY_NS))
    with ChildProcess(board.command, env=environment, stderr=subprocess.PIPE, text=True) as agent:
        while line := agent.stderr.readline():
            log.append(line)
            if "begins" in line or " of 3: " in line:
                set_clock(clock, next(jumps, 365 * DAY_NS))
    assert agent.returncode == 0, "".join(log)
    board.clock_runs = board.check(stored, sweep_id)
    return int(report.read_text())


def test_setting_the_wall_clock_disturbs_no_run(board: Board, calls: int) -> None:
    for run in board.clock_runs:
        assert run.metrics
        assert 0.15 < (run.window_ns[1] - run.window_ns[0]) / 1e9 < 60
    days = sorted(run.conditions.clock_offset.offset_s / 86400 for run in board.clock_runs)
    assert days[0] == pytest.approx(-365, abs=0.01), "a year ahead of the server"
    assert days[-1] == pytest.approx(1, abs=0.01), "a day behind it"


def test_a_run_keeps_what_its_device_was(board: Board, calls: int) -> None:
    for run in board.clock_runs:
        state = run.conditions.device_state
        assert {clock.governor for clock in state.cpu_clocks} == {"schedutil"}
        assert {clock.high_hz for clock in state.cpu_clocks} == {1_190_400_000}, "as the power mode had set them"


def test_a_whole_agent_that_is_killed_anywhere(
    server: Any, stored: Store, shim: Shim, board: Board, calls: int
) -> None:
    """Killed at calls that chance chooses, most of them while a worker runs and the board is in another power mode."""
    report = board.state / "killed-at"
    chance, killed = random.Random(7), Counter[str]()
    for number in range(KILLS):
        sweep_id = server.create_sweep(board.identity, PLAN)
        step = int(calls * (number + chance.random()) / KILLS)
        report.unlink(missing_ok=True)
        status = board.run(shim.environment(kill_at=step, torn=bool(number % 2), report=report))
        killed[report.read_text() if status == -9 else "ended before"] += 1
        board.finish(stored, sweep_id)
        board.check(stored, sweep_id)
    assert killed["ended before"] <= KILLS // 4
    sys.stdout.write(f"{KILLS} kills of a whole agent over {calls} calls: {dict(killed.most_common())}\n")
