"""A server is killed while it takes in what an agent sends, at any write of its database or of its answers."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from faults.lives import NEVER, PLAN

pytestmark = pytest.mark.campaign(minutes=0.5)

KILLS = int(os.environ.get("POWERLAB_FAULT_SERVER_KILLS", "1"))


def test_a_server_that_is_killed_at_any_write_loses_nothing(
    server: Any, stored: Any, lives: Any, shim: Any, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    sweep_id = server.create_sweep(lives.identity, PLAN)
    server.kill()
    server.start(shim.environment(kill_at=NEVER, report=report))
    assert lives.live()[0] == 0
    server.process.terminate()  # in order, so that it says how many calls that took
    server.process.communicate()
    calls = int(report.read_text())
    chance, killed = random.Random(7), Counter[str]()
    server.start()
    lives.check(stored, sweep_id)
    for number in range(KILLS):
        sweep_id = server.create_sweep(lives.identity, PLAN)
        server.kill()
        report.unlink(missing_ok=True)
        step = int(calls * (number + chance.random()) / KILLS)
        server.start(shim.environment(kill_at=step, torn=bool(number % 2), report=report))
        lives.start()
        while server.process.poll() is None and not lives.has_ended():
            time.sleep(0.02)
        killed[report.read_text() if report.exists() else "ended before"] += 1
        server.kill()
        server.start()
        assert lives.ended()[0] == 0
        lives.finish(stored, sweep_id)
        lives.check(stored, sweep_id)
    missed = killed.pop("ended before", 0)
    assert missed <= KILLS // 2
    sys.stdout.write(
        f"{killed.total()} kills of the server over {calls} calls, {missed} missed: {dict(killed.most_common())}\n"
    )
