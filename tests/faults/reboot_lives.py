"""Lives of an agent that may reboot its board, as in ``agent_lives.py``: the real sweep, and only its runs are made up.

A life ends where the board goes down, as SIGTERM ends it on a real one; whoever starts the next life boots the board.
"""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from faults import agent_lives
from powerlab.boards.simulator.reboot import reboot_requested
from powerlab.domain.run import Conditions
from powerlab.measure.output_check import OutputCheck
from powerlab.measure.recording.rails import Meter
from powerlab.measure.run import Measured, RunRequest, failed_run
from powerlab.modes.reboot.transition import Rebooting
from powerlab.sweep import runner
from powerlab.sweep.host import Host
from powerlab.sweep.model_check import ModelCheck
from powerlab.sysroot import Sysroot
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.retry import Backoff
from powerlab_agent.spool import Spool
from powerlab_agent.state import load_identity, only_agent
from server_examples import COUNTER, RAIL, make_run, make_trace

MODES = {"MODE_10W": ("pmode:0001", "1"), "MODE_15W": ("pmode:0002", "0"), "current": ("pmode:0000", "0")}
"""What the board keeps for the next boot, and the mask that it was booted with."""


def measure_run(request: RunRequest) -> Measured:
    """Make a run up, a failed one where the board is not in the mode that the point asks for."""
    sysroot = request.meter.sysroot
    found = sysroot.read("/var/lib/nvpmodel/status"), sysroot.read("/sys/devices/17000000.gv11b/tpc_pg_mask")
    if found != MODES[request.point.mode]:
        return Measured(run=failed_run(request, "mode-not-ready", f"the board is in {found}"))
    run = make_run(request.sweep_id, request.point, request.repeat)
    traces = (make_trace(RAIL, count=20), make_trace(COUNTER, count=20))
    return Measured(run=replace(run, conditions=Conditions(sample_period_s=0.01)), traces=traces)


MADE_UP: dict[str, Any] = {
    "measure_run": measure_run,
    "check_models": lambda plan, *_: ModelCheck({point.id: 0.001 for point in plan.points()}),
    "check_outputs": lambda *_: OutputCheck(),
    "choose_meter": lambda sysroot, *_: Meter(sysroot=sysroot, total=None, rails=(), sample_period_s=0.01),
    "watched_meter": lambda meter, *_: meter,
    "calibrated_meter": lambda meter, *_: meter,
}
"""What leaves of a sweep what sets modes and reboots, and nothing that takes time."""


def host_of(state: Path, tree: Path, name: str, *, may_reboot: bool = True) -> Host:
    host = Host(sysroot=Sysroot(tree), state_dir=state, name=name)
    host.may_reboot = may_reboot
    return host


def life(state: Path, tree: Path, *, may_reboot: bool = True, goes_down: bool = True, wait_s: float = 20.0) -> Daemon:
    """Let the agent live until there is nothing to do, or its board goes down."""
    identity = load_identity(state)
    client = Client(identity.server, identity.token)
    with (
        patch.multiple(runner, **MADE_UP),
        only_agent(state),
        closing(Spool(state / "spool.db", agent_lives.LIMITS)) as spool,
    ):
        daemon = Daemon(
            client=client,
            models=ModelCache(client, state / "models", 1_000_000),
            host=host_of(state, tree, identity.device_name, may_reboot=may_reboot),
            spool=spool,
            once=True,
            backoff=Backoff(first_s=0.01, longest_s=0.05),
        )
        daemon._reboots.wait_s = wait_s
        over = threading.Event()
        watcher = threading.Thread(target=_go_down, args=(daemon, Sysroot(tree), over))
        if goes_down:
            watcher.start()
        try:
            daemon.run()
        finally:
            over.set()
            if goes_down:
                watcher.join()
    return daemon


def _go_down(daemon: Daemon, board: Sysroot, over: threading.Event) -> None:
    while not over.wait(0.01):
        if reboot_requested(board):
            daemon.request_stop()
            return


def main() -> None:
    assert Rebooting  # loaded before the forks, as all that an agent loads
    agent_lives.WORK["reboot"] = life
    agent_lives.main()


if __name__ == "__main__":
    main()
