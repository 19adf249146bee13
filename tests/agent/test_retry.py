"""How long an agent waits: longer each time, as long as the server asks, and not at the same instant as the others."""

from __future__ import annotations

import threading
import time
from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failing_server import failing_server
from powerlab.protocol.messages import Lease
from powerlab.protocol.records import SweepState
from powerlab_agent.client import Client, ServerUnreachableError
from powerlab_agent.heartbeat import Heartbeat
from powerlab_agent.retry import LONGEST_ASKED_S, Backoff
from server_examples import PLAN

TIME = (200, {}, b'{"received_ns": 1, "sent_ns": 2}')
TEN_YEARS_S = 10 * 365 * 86400


@given(st.integers(1, 40))
def test_waits_grow_and_stay_below_the_longest(failures: int) -> None:
    backoff = Backoff(first_s=0.5, longest_s=30.0)
    waits = [backoff.failed() for _ in range(failures)]
    assert all(0 <= wait <= min(30.0, 0.5 * 2.0**number) for number, wait in enumerate(waits))
    backoff.worked()
    assert backoff.failed() <= 0.5


@given(asked_s=st.floats(0, TEN_YEARS_S), failures=st.integers(0, 20))
def test_never_before_the_server_asks_and_never_too_long(asked_s: float, failures: int) -> None:
    backoff = Backoff()
    for _ in range(failures):
        backoff.failed()
    assert min(asked_s, LONGEST_ASKED_S) <= backoff.failed(asked_s) <= 2 * LONGEST_ASKED_S


@pytest.mark.parametrize("asked_s", [1.0, 3.0, 60.0])
def test_a_thousand_agents_that_were_told_the_same_come_one_after_the_other(asked_s: float) -> None:
    waits = [Backoff(random=Random(number)).failed(asked_s) for number in range(1000)]
    assert asked_s <= min(waits)
    assert max(waits) <= 2 * asked_s
    at_once = Counter(int(100 * wait / asked_s) for wait in waits)
    assert max(at_once.values()) <= 30, "of a thousand, ten are expected within a hundredth of the time asked for"


@pytest.mark.parametrize(
    ("status", "fields", "least_s", "most_s"),
    [
        (503, {"Retry-After": "20"}, 15, 20),
        (429, {"Retry-After": "20"}, 15, 20),
        (503, {"Retry-After": "Sun, 06 Nov 1994 08:49:57 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 15, 60),
        (503, {"Retry-After": str(TEN_YEARS_S)}, 55, LONGEST_ASKED_S),
        (503, {"Retry-After": "9" * 4000}, 55, LONGEST_ASKED_S),
    ],
)
def test_a_server_that_asks_for_a_rest_is_not_asked_meanwhile(
    status: int, fields: dict[str, str], least_s: float, most_s: float
) -> None:
    with failing_server((status, fields, b""), TIME) as (address, asked):
        client = Client(address)
        rests = []
        for ask in (client.time, client.time, lambda: client.lease(0.0), lambda: client.model_content("0" * 64, 0)):
            with pytest.raises(ServerUnreachableError) as later:
                ask()
            rests.append(later.value.rest_s)
        assert len(asked) == 1
        assert least_s <= min(rests)
        assert max(rests) <= most_s
        client.contact.not_before_s = time.monotonic()
        assert client.time().sent_ns == 2


@pytest.mark.parametrize("fields", [{}, {"Retry-After": "soon"}, {"Retry-After": "0"}])
def test_a_server_that_does_not_say_when_may_be_asked_at_once(fields: dict[str, str]) -> None:
    with failing_server((503, fields, b""), TIME) as (address, asked):
        client = Client(address)
        with pytest.raises(ServerUnreachableError) as later:
            client.time()
        assert later.value.rest_s == 0
        assert client.time().sent_ns == 2
    assert len(asked) == 2


def test_a_refused_heartbeat_comes_again_when_it_may() -> None:
    class Busy:
        def __init__(self) -> None:
            self.asked_s: list[float] = []
            self.enough = threading.Event()

        def heartbeat(self, *_: Any) -> SweepState:
            self.asked_s.append(time.monotonic())
            if len(self.asked_s) == 1:
                raise ServerUnreachableError("later", 0.5)
            self.enough.set()
            return SweepState.RUNNING

    busy, ended = Busy(), threading.Event()
    lease = Lease(job_id="job", sweep_id="sweep", plan=PLAN, fencing_token=1, lease_s=0.3, done=())
    with Heartbeat(busy, lease, ended.set):
        assert busy.enough.wait(60)
    assert busy.asked_s[1] - busy.asked_s[0] >= 0.5
    assert not ended.is_set()
