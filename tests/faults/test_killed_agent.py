"""An agent is killed at every call that changes a disk or sends, half of them in the middle of a write.

``POWERLAB_FAULT_KILLS=1000 .venv/bin/pytest tests/faults -k killed_at -s`` makes a campaign of as many kills and
prints what was killed where.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from faults.lives import NEVER, PLAN, Lives
from powerlab.domain.errors import PowerlabError
from powerlab_agent.state import load_identity, save_identity

pytestmark = pytest.mark.campaign

KILLS = int(os.environ.get("POWERLAB_FAULT_KILLS", "6"))
BATCH = 50
"""Kills in one test, for no test may take more than a quarter of an hour."""
MOST_MISSED = BATCH // 4
"""Lives differ by a few calls, such as waits for a lock, so that a kill may aim beyond the end of a short one."""


def steps(calls: int, kills: int) -> Iterator[tuple[int, bool]]:
    """Yield the calls to be killed at: spread over all of them, each whole and torn, then any."""
    for number in range(kills):
        if kills <= 2 * calls:
            yield number * calls // kills, bool(number % 2)
        elif number < 2 * calls:
            yield number // 2, bool(number % 2)
        else:
            yield anywhere(calls, number)


def anywhere(calls: int, seed: int) -> tuple[int, bool]:
    chance = random.Random(seed)
    return chance.randrange(calls), bool(chance.randrange(2))


@pytest.mark.parametrize("batch", range(-(-KILLS // BATCH)))
def test_an_agent_that_is_killed_at_any_call_delivers_every_run_once(
    server: Any, stored: Any, lives: Lives, batch: int
) -> None:
    whole = server.create_sweep(lives.identity, PLAN)
    status, calls, _ = lives.live(step=NEVER)
    assert (status, calls > 50) == (0, True)
    lives.check(stored, whole)
    killed, missed = Counter[str](), 0
    chosen = list(steps(calls, KILLS))[batch * BATCH : (batch + 1) * BATCH]
    while chosen:
        step, torn = chosen.pop(0)
        sweep_id = server.create_sweep(lives.identity, PLAN)
        status, _, name = lives.live(step=step, torn=torn)
        if status == -9:
            killed[name] += 1
        else:  # it had ended by then: that is no kill, and another one makes up for it
            missed += 1
            assert missed <= MOST_MISSED, "too many kills meet nobody"
            chosen.append(anywhere(calls, missed))
        again = lives.finish(stored, sweep_id)
        try:
            lives.check(stored, sweep_id)
        except AssertionError as error:
            raise AssertionError(
                f"killed at call {step} ({name}, torn: {torn}), {again} lives after: {error}"
            ) from error
    sys.stdout.write(f"{killed.total()} kills over {calls} calls, {missed} missed: {dict(killed.most_common())}\n")


def test_a_token_is_kept_whole_or_not_at_all(lives: Any) -> None:
    _, calls, _ = lives.live("enrol", NEVER)
    killed = 0
    for step in range(calls):
        for torn in (False, True):
            before = load_identity(lives.state)
            status, _, _ = lives.live("enrol", step, torn)
            killed += status == -9
            try:
                after = load_identity(lives.state)
            except PowerlabError as error:
                raise AssertionError(f"killed at call {step}: {error}") from error
            assert after.token in {before.token, f"{before.token}x"}
    save_identity(lives.state, lives.identity)
    assert killed == 2 * calls
