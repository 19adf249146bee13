"""Lives of an agent on a simulated board, each a fork of this process, which has loaded all that an agent loads.

Everything but the measuring is real: the daemon, its spool, its line to the server, the board's power mode and its
journal. Run under the shim; its arguments are the agent's state directory, the board's tree, and the seconds that it
waits for an answer. It reads a line a life, ``WHAT STEP TORN``, and answers with one: how the life ended, how many
calls it made, and at which it was killed.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Conditions
from powerlab.domain.sweep import SweepPlan
from powerlab.modes.controller import ModeController
from powerlab.protocol import chunks
from powerlab.sweep.events import RunFinished, RunStarted, SweepEvent, SweepFinished, SweepStarted
from powerlab.sysroot import Sysroot
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.retry import Backoff
from powerlab_agent.room import Limits
from powerlab_agent.spool import Spool
from powerlab_agent.state import load_identity, only_agent, save_identity
from server_examples import COUNTER, RAIL, capabilities, device, make_run, make_trace

MODE = "governor=powersave"
ASLEEP, NEVER = -2, -1
LIMITS = Limits(reserve_bytes=0)


class BoardHost:
    """A simulated board whose sensors stand still."""

    def __init__(self, sysroot: Sysroot, state: Path, name: str) -> None:
        self.sysroot = sysroot
        self.controller = ModeController(sysroot, state)
        self._name = name

    def device(self) -> Any:
        return device(self._name)

    def capabilities(self) -> Any:
        return capabilities()


def runner(
    plan: SweepPlan, sweep_id: str, host: Any, done: frozenset[tuple[str, int]], stop: threading.Event | None
) -> Generator[SweepEvent, None, None]:
    host.controller.recover()
    wanted = [(point, repeat) for point in plan.points() for repeat in range(plan.repeats)]
    missing = [(point, repeat) for point, repeat in wanted if (point.id, repeat) not in done]
    count, stopped = len(missing), False
    yield SweepStarted(sweep_id=sweep_id, run_count=count, expected_s=1.0)
    for index, (point, repeat) in enumerate(missing, start=1):
        if stopped := stop is not None and stop.is_set():
            break
        with host.controller.applied(MODE):
            yield RunStarted(point=point, repeat=repeat, index=index, run_count=count)
            run = replace(make_run(sweep_id, point, repeat), conditions=Conditions(sample_period_s=0.01))
            traces = (make_trace(RAIL, count=20), make_trace(COUNTER, count=20))
            yield RunFinished(run=run, traces=traces, index=index, run_count=count)
    yield SweepFinished(
        sweep_id=sweep_id, valid_count=0, flagged_count=count, void_count=0, failed_count=0, stopped=stopped
    )


def work(state: Path, tree: Path) -> None:
    """Take what the server has to do, carry it out, upload it, end."""
    identity = load_identity(state)
    client = Client(identity.server, identity.token, float(sys.argv[3]))
    with only_agent(state), closing(Spool(state / "spool.db", LIMITS)) as spool:
        Daemon(
            client=client,
            models=ModelCache(client, state / "models", 1_000_000),
            host=BoardHost(Sysroot(tree), state, identity.device_name),
            spool=spool,
            once=True,
            runner=runner,
            backoff=Backoff(first_s=0.01, longest_s=0.05),
        ).run()


def enrol(state: Path, tree: Path) -> None:
    """Keep a new token."""
    old = load_identity(state)
    save_identity(state, replace(old, token=f"{old.token}x"))


WORK = {"work": work, "enrol": enrol}


def live(what: str, step: int, torn: int, state: Path, tree: Path) -> str:
    shim, report = ctypes.CDLL(None), state / "killed-at"
    reader, writer = os.pipe()
    report.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            shim.fault_arm(step, torn, os.fsencode(report))
            WORK[what](state, tree)
            calls = shim.fault_counted()
            shim.fault_arm(ASLEEP, 0, b"")
            os.write(writer, str(calls).encode())
            status = 0
        except PowerlabError as error:
            sys.stderr.write(f"{error}\n")
            status = 2
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    os.close(writer)
    _, ended = os.waitpid(pid, 0)
    with open(reader, "rb") as said:
        calls = said.read().decode() or "0"
    killed_at = report.read_text() if report.exists() else "-"
    return f"{os.waitstatus_to_exitcode(ended)} {calls} {killed_at}"


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    assert chunks.MAX_SAMPLES  # loaded before the forks
    state, tree = Path(sys.argv[1]), Path(sys.argv[2])
    for line in sys.stdin:
        what, step, torn = line.split()
        sys.stdout.write(live(what, int(step), int(torn), state, tree) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
