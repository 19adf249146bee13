"""How often somebody may ask."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.access import limits
from powerlab.access.limits import Limit, TooManyRequestsError


@dataclass
class Seconds:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def tries(limit: Limit, key: str, count: int) -> int:
    """Return how many of so many tries are let through."""
    let_through = 0
    for _ in range(count):
        try:
            limit.spend(key)
            let_through += 1
        except TooManyRequestsError:
            pass
    return let_through


def test_a_burst_and_then_a_steady_rate() -> None:
    seconds = Seconds()
    limit = Limit(burst=5, per_s=2, clock=seconds)
    assert tries(limit, "alice", 20) == 5
    seconds.now += 1.5
    assert tries(limit, "alice", 20) == 3
    seconds.now += 1e6
    assert tries(limit, "alice", 20) == 5


def test_one_key_does_not_use_up_anothers_tries() -> None:
    limit = Limit(burst=2, per_s=1, clock=Seconds())
    assert (tries(limit, "alice", 9), tries(limit, "bob", 9)) == (2, 2)


@given(
    burst=st.integers(1, 20),
    per_s=st.floats(0.01, 100),
    pauses=st.lists(st.floats(0, 10), max_size=40),
)
def test_never_more_than_burst_and_rate_allow(burst: int, per_s: float, pauses: list[float]) -> None:
    seconds = Seconds()
    limit = Limit(burst=burst, per_s=per_s, clock=seconds)
    let_through = 0
    for pause in pauses:
        seconds.now += pause
        let_through += tries(limit, "alice", 3)
    assert let_through <= burst + (seconds.now - 1000) * per_s + 1e-6


@given(burst=st.integers(1, 5), per_s=st.floats(0.01, 100))
def test_who_waits_as_long_as_told_is_let_through(burst: int, per_s: float) -> None:
    seconds = Seconds()
    limit = Limit(burst=burst, per_s=per_s, clock=seconds)
    tries(limit, "alice", burst)
    with pytest.raises(TooManyRequestsError) as refused:
        limit.check("alice")
    assert refused.value.retry_after_s >= 1
    seconds.now += refused.value.retry_after_s
    limit.spend("alice")


def test_looking_takes_no_try() -> None:
    limit = Limit(burst=1, per_s=1, clock=Seconds())
    for _ in range(5):
        limit.check("alice")
    assert tries(limit, "alice", 2) == 1


def test_a_flood_of_keys_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_BUCKETS", 100)
    limit = Limit(burst=3, per_s=0.001, clock=Seconds())
    for number in range(1000):
        limit.spend(f"address {number}")
        if number % 50 == 0:
            tries(limit, "often", 5)
    assert len(limit._left) <= 100
    assert tries(limit, "often", 5) == 0  # whoever keeps asking is not forgotten among them
