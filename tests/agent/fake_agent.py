"""An agent whose device measures nothing: it says ``measured N`` for each run and waits for a line before it goes on.

Everything but the measuring is the real daemon; run as a script with the state directory as its argument.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import Done
from powerlab.domain.sweep import SweepPlan
from powerlab.sweep.events import (
    RunFinished,
    RunStarted,
    SearchEnded,
    SweepEvent,
    SweepExtended,
    SweepFinished,
    SweepStarted,
)
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.metrics import AgentCollector, served
from powerlab_agent.models import ModelCache
from powerlab_agent.retry import Backoff
from powerlab_agent.spool import Spool
from powerlab_agent.spool_size import SpoolSize
from powerlab_agent.state import load_identity, only_agent
from server_examples import capabilities, device, make_run, make_trace
from zone_tree import ZoneTree


class FakeController:
    def recover(self) -> tuple[()]:
        return ()


class FakeHost:
    """A device as the daemon needs it."""

    controller = FakeController()

    def __init__(self, name: str, tree: Path) -> None:
        self._device = device(name)
        self.sysroot = ZoneTree(tree, ("cpu-thermal", "41500"), ("gpu-thermal", "39000")).sysroot

    def device(self) -> Any:
        return self._device

    def capabilities(self) -> Any:
        return capabilities()


def runner(
    plan: SweepPlan, sweep_id: str, host: Any, done: Done, stop: threading.Event | None
) -> Generator[SweepEvent, None, None]:
    if plan.seed == 13:
        raise PowerlabError("thirteen is not measured here; choose another seed.")
    if plan.seed == 14:
        raise ZeroDivisionError("fourteen")
    wanted = [(point, repeat) for point in plan.points() for repeat in range(plan.repeats)]
    if plan.until_percent:  # this device never knows the first point before its fifth repeat
        wanted += [(plan.points()[0], repeat) for repeat in range(plan.repeats, 5)]
    if plan.search_percent:  # this device always knows enough after the first runs of the first two points
        wanted = wanted[: 2 * plan.repeats]
    missing = [(point, repeat) for point, repeat in wanted if (point.id, repeat) not in done]
    yield SweepStarted(sweep_id=sweep_id, run_count=len(missing), expected_s=1.0, advice="all too short.")
    for index, (point, repeat) in enumerate(missing, start=1):
        if stop is not None and stop.is_set():
            yield finished(sweep_id, stopped=True)
            return
        if repeat == plan.repeats:
            yield SweepExtended(run_count=len(missing), detail="Once more.")
        yield RunStarted(point=point, repeat=repeat, index=index, run_count=len(missing))
        run = make_run(sweep_id, point, repeat)
        yield RunFinished(run=run, traces=(make_trace(count=20),), index=index, run_count=len(missing))
        sys.stdout.write(f"measured {index}\n")
        sys.stdout.flush()
        sys.stdin.readline()
    if plan.search_percent:
        yield SearchEnded(run_count=len(missing), detail="2 points measured; stopped because that is enough.")
    yield finished(sweep_id, stopped=False)


def finished(sweep_id: str, *, stopped: bool) -> SweepFinished:
    return SweepFinished(
        sweep_id=sweep_id, valid_count=0, flagged_count=0, void_count=0, failed_count=0, stopped=stopped
    )


def main() -> None:
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    state = Path(sys.argv[1])
    identity = load_identity(state)
    with only_agent(state), closing(Spool(state / "spool.db")) as spool:
        client = Client(identity.server, identity.token)
        daemon = Daemon(
            client=client,
            host=FakeHost(identity.device_name, Path(tempfile.mkdtemp(dir=state))),
            spool=spool,
            models=ModelCache(client, state / "models", 10_000_000),
            once=True,
            runner=runner,
            backoff=Backoff(first_s=0.02, longest_s=0.2),
        )
        signal.signal(signal.SIGTERM, lambda *_: daemon.request_stop())
        with shown(daemon, state):
            daemon.run()


def shown(daemon: Daemon, state: Path) -> AbstractContextManager[object]:
    port = os.environ.get("METRICS_PORT")
    if port is None:
        return nullcontext()
    size = SpoolSize(state / "spool.db")
    collector = AgentCollector(status=daemon.status, contact=daemon.client.contact, spool=size, host=daemon.host)
    return served(collector, "127.0.0.1", int(port))


if __name__ == "__main__":
    main()
