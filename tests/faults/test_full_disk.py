"""The disk of an agent's spool fills up while it measures: it stops, says so, and goes on when there is room."""

from __future__ import annotations

import logging
import os
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from faults.agent_lives import BoardHost, runner
from faults.lives import PLAN, RUNS, content
from powerlab.boards.simulator.tree import create_tree
from powerlab.protocol.records import SweepState
from powerlab.store.reads import queries
from powerlab.sysroot import Sysroot
from powerlab_agent.client import Client
from powerlab_agent.daemon import Daemon
from powerlab_agent.models import ModelCache
from powerlab_agent.retry import Backoff
from powerlab_agent.room import Limits, free_bytes
from powerlab_agent.spool import Spool

DISK_BYTES = 1 << 20


class SmallDisk:
    """A disk of its own, where the tests may mount one; else the kernel's limit on the size of a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "powerlab", str(folder)]
        self.mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Leave no byte."""
        if not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._limits[1]))
            return
        with (self.folder / "others").open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue
        assert free_bytes(self.folder) == 0

    def make_room(self) -> None:
        """Take away what filled it."""
        if self.mounted:
            (self.folder / "others").unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)

    def close(self) -> None:
        self.make_room()
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    disk = SmallDisk(tmp_path / "disk")
    yield disk
    disk.close()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def world(server: Any, disk: SmallDisk, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    """What a daemon on the small disk needs; the spool belongs to the daemon's thread."""
    caplog.set_level(logging.INFO, "powerlab.agent")

    class World:
        def __init__(self) -> None:
            self.identity = server.enrol()
            self.sweep_id = server.create_sweep(self.identity, PLAN)
            create_tree("apm-xgene", tmp_path / "tree")
            self.before = content(tmp_path / "tree")
            self.tree = tmp_path / "tree"
            self.measured = 0

        def runner(self, *args: Any) -> Any:
            for event in runner(*args):
                if type(event).__name__ == "RunFinished":
                    self.measured += 1
                    if self.measured == 1:  # nothing is spooled yet whose upload could make room
                        disk.fill()
                yield event

        def live(self) -> None:
            with closing(Spool(disk.folder / "spool.db", Limits(reserve_bytes=0))) as spool:
                client = Client(server.url, self.identity.token)
                self.daemon = Daemon(
                    client=client,
                    models=ModelCache(client, tmp_path / "models", 1_000_000),
                    host=BoardHost(Sysroot(self.tree), tmp_path / "modes", self.identity.device_name),
                    spool=spool,
                    once=True,
                    runner=self.runner,
                    backoff=Backoff(first_s=0.02, longest_s=0.05),
                )
                self.daemon.run()

        def content(self) -> dict[str, str]:
            return content(self.tree)

    return World()


def test_measuring_stops_while_there_is_no_room_and_goes_on(
    server: Any, stored: Any, disk: SmallDisk, world: Any, caplog: pytest.LogCaptureFixture
) -> None:
    life = threading.Thread(target=world.live)
    life.start()
    wait_for(lambda: "Measuring stops." in caplog.text and "Trying again" in caplog.text)
    assert world.content() == world.before, "the device has its own power mode back while the agent waits"
    assert world.measured == 1
    with stored.session() as session:
        assert not queries.runs_of_sweep(session, world.sweep_id)
    disk.make_room()
    life.join(60)
    assert not life.is_alive()
    assert "there is room again" in caplog.text
    (sentence,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("Measuring stops.")]
    assert "free some space on its disk." in sentence
    with stored.session() as session:
        runs = queries.runs_of_sweep(session, world.sweep_id)
        assert queries.sweep(session, world.sweep_id).state is SweepState.DONE
    assert world.measured == len(runs) == RUNS, "nothing was measured twice, and nothing lost"
    assert world.content() == world.before
    with closing(Spool(disk.folder / "spool.db")) as spool:
        assert (spool.next(), spool.held()) == (None, None)


def test_an_agent_that_waits_for_room_can_be_stopped(
    server: Any, stored: Any, disk: SmallDisk, world: Any, caplog: pytest.LogCaptureFixture
) -> None:
    life = threading.Thread(target=world.live)
    life.start()
    wait_for(lambda: "Trying again" in caplog.text)
    world.daemon.request_stop()
    life.join(60)
    assert not life.is_alive()
    assert "stopped while there was no room" in caplog.text
    assert world.content() == world.before
    disk.make_room()
    life = threading.Thread(target=world.live)
    life.start()
    life.join(60)
    with stored.session() as session:
        assert len(queries.runs_of_sweep(session, world.sweep_id)) == RUNS
        assert queries.sweep(session, world.sweep_id).state is SweepState.DONE
