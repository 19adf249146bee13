"""The server's disk is full while it takes in what an agent sends: it says "later", loses nothing, and goes on."""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from typing import Any

import pytest

from faults.lives import PLAN

TIMES = int(os.environ.get("POWERLAB_FAULT_FULL_SERVER_DISKS", "3"))
_NO_FILE_GROWS = 0


def refusals(lives: Any) -> int:
    """Return how often the agent was told to come later."""
    return (lives.state.parent / "log").read_text().count("answers with status 5")


@pytest.mark.campaign
def test_a_server_without_room_loses_nothing(server: Any, stored: Any, lives: Any) -> None:
    """The kernel refuses every write of the server's to a file (RLIMIT_FSIZE), its database's own among them."""
    chance, told = random.Random(2), 0
    for _ in range(TIMES):
        sweep_id = server.create_sweep(lives.identity, PLAN)
        before = refusals(lives)
        free = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        lives.start()
        time.sleep(0.1 * chance.random())
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (_NO_FILE_GROWS, free[1]))
        while refusals(lives) == before and not lives.has_ended():
            time.sleep(0.01)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, free)
        told += refusals(lives) - before
        assert lives.ended()[0] == 0
        lives.finish(stored, sweep_id)
        lives.check(stored, sweep_id)
    assert server.process.poll() is None, "the server has outlived it"
    assert told
    sys.stdout.write(f"{TIMES} full disks of the server, {told} requests told to come later\n")
