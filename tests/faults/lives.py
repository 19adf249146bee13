"""What the tests of faults use: a shim between a process and the kernel, and lives of an agent."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from powerlab.boards.simulator.tree import create_tree
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, save_identity

FAULTS = Path(__file__).parent
PLAN = SweepPlan(models=("resnet50",), threads=(1,), modes=("SLOW",), duration_s=0.1)
RUNS = len(PLAN.points()) * PLAN.repeats
ASLEEP, NEVER = -2, -1
READ_S = 30.0


@dataclass(frozen=True)
class Shim:
    """The library, built."""

    path: Path

    def environment(
        self, *, kill_at: int | None = None, torn: bool = False, report: Path | None = None, clock: Path | None = None
    ) -> dict[str, str]:
        """Return the environment of a process that shall meet the faults; see the head of ``shim.c``."""
        said = {
            "POWERLAB_FAULT_KILL_AT": None if kill_at is None else str(kill_at),
            "POWERLAB_FAULT_TORN": str(int(torn)),
            "POWERLAB_FAULT_REPORT": report and str(report),
            "POWERLAB_FAULT_CLOCK": clock and str(clock),
        }
        return {**os.environ, "LD_PRELOAD": str(self.path), **{key: text for key, text in said.items() if text}}


@dataclass
class Lives:
    """An agent's state, its board, and the process that is forked for each of its lives."""

    state: Path
    tree: Path
    identity: Identity
    before: Mapping[str, str]
    process: subprocess.Popen[str]

    def start(self, what: str = "work", step: int = ASLEEP, torn: bool = False) -> None:
        self.process.stdin.write(f"{what} {step} {int(torn)}\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[int, int, str]:
        """Wait for its end; return its status, how many calls it made, and at which it was killed."""
        status, calls, name = self.process.stdout.readline().split()
        return int(status), int(calls), name

    def has_ended(self) -> bool:
        """Say whether the life that was started is over."""
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def live(self, what: str = "work", step: int = ASLEEP, torn: bool = False) -> tuple[int, int, str]:
        self.start(what, step, torn)
        return self.ended()

    def finish(self, stored: Store, sweep_id: str, most_lives: int = 60) -> int:
        """Let the agent live again and again until its sweep is over; return how many lives that took."""
        for number in range(1, most_lives + 1):
            status, _, _ = self.live()
            assert status == 0, "an agent that starts again ends in order"
            with stored.session() as session:
                if queries.sweep(session, sweep_id).state is SweepState.DONE:
                    return number
            time.sleep(0.15)
        raise AssertionError(f"the sweep {sweep_id} is stuck")

    def check(self, stored: Store, sweep_id: str) -> None:
        """One result a run, whole, and nothing left behind."""
        with stored.session() as session:
            runs = queries.runs_of_sweep(session, sweep_id)
            traces = [len(queries.power_traces(session, run.id)) for run in runs]
        assert {(run.point.id, run.repeat) for run in runs} == {
            (point.id, repeat) for point in PLAN.points() for repeat in range(PLAN.repeats)
        }
        assert len(runs) == RUNS
        assert traces == [2] * RUNS
        with closing(Spool(self.state / "spool.db")) as spool:
            assert (spool.next(), spool.held(), spool.refused()) == (None, None, {})
        assert content(self.tree) == self.before, "the device has its own power mode back"


def content(tree: Path) -> dict[str, str]:
    """Return every file of a board's tree but the lock of its modes."""
    files = (path for path in tree.rglob("*") if path.is_file() and "run/lock" not in str(path))
    return {str(path.relative_to(tree)): path.read_text(errors="replace") for path in files}


@contextmanager
def start_lives(
    shim: Shim,
    identity: Identity,
    folder: Path,
    program: str = "agent_lives.py",
    *,
    read_s: float = READ_S,
    prefix: Sequence[str] = (),
) -> Iterator[Lives]:
    """An agent of an identity, with a state directory and a board of its own, made here unless it is there.

    ``read_s`` is how long its server may say nothing before the agent gives a request up, ``prefix`` what its command
    begins with: the way into another namespace, say, which shall not meet the faults itself.
    """
    state, tree = folder / "state", folder / "tree"
    folder.mkdir(exist_ok=True)
    save_identity(state, identity)
    if not tree.exists():
        create_tree("apm-xgene", tree)
    words = (sys.executable, str(FAULTS / program), str(state), str(tree), str(read_s))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*prefix, "env", f"LD_PRELOAD={shim.path}", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{FAULTS.parent}:{FAULTS.parent / 'support'}"},
        )
    try:
        yield Lives(state, tree, identity, content(tree), process)
    finally:
        for one in (*psutil.Process(process.pid).children(), process):  # a life may be frozen
            one.kill()
        process.communicate()
