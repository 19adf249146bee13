"""What may be sent twice is tried again; what may not is sent once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failing_server import failing_server
from powerlab.client import Client, ServerAwayError, StatusError
from powerlab.client import patience as patience_module
from powerlab.client.patience import FIRST_S, LONGEST_S, TRIES, patiently
from powerlab.protocol.messages import EnrolmentCodeRequest, SweepRequest
from server_examples import PLAN


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Wait for nothing, and keep how long it would have been."""
    kept: list[float] = []
    monkeypatch.setattr(patience_module, "time", SimpleNamespace(sleep=kept.append))
    monkeypatch.setattr(patiently, "__defaults__", (kept.append, None))
    return kept


EMPTY = (200, {}, b'{"items": []}')
AWAY = (503, {}, b"")


def test_reading_is_tried_again(waits: list[float]) -> None:
    with failing_server(AWAY, (429, {"Retry-After": "7"}, b""), EMPTY) as (address, asked):
        assert list(Client(address).devices()) == []
    assert len(asked) == 3
    assert 0 <= waits[0] <= FIRST_S
    assert 7 <= waits[1] <= 7 + 2 * FIRST_S


def test_a_sweep_is_asked_for_again_under_the_same_key(waits: list[float]) -> None:
    with failing_server(AWAY) as (address, asked), pytest.raises(ServerAwayError):
        Client(address).submit(SweepRequest(device_id="x", plan=PLAN))
    assert len(asked) == TRIES
    assert len(set(asked)) == 1
    assert asked[0][2]


def test_a_code_is_asked_for_once(waits: list[float]) -> None:
    with failing_server(AWAY) as (address, asked), pytest.raises(ServerAwayError):
        Client(address).enrolment_code(EnrolmentCodeRequest())
    assert (len(asked), waits) == (1, [])


def test_a_no_is_not_asked_again(waits: list[float]) -> None:
    with failing_server((404, {}, b"")) as (address, asked), pytest.raises(StatusError, match="status 404"):
        Client(address).sweep("x")
    assert (len(asked), waits) == (1, [])


@pytest.mark.parametrize(("after", "tries"), [(f"{LONGEST_S + 1:.0f}", 1), ("tomorrow", TRIES), ("-1", TRIES)])
def test_a_server_that_asks_for_too_long_a_rest_is_left_alone(waits: list[float], after: str, tries: int) -> None:
    with failing_server((503, {"Retry-After": after}, b"")) as (address, asked), pytest.raises(ServerAwayError):
        Client(address).sweep("x")
    assert len(asked) == tries


@given(failures=st.integers(0, TRIES))
def test_waits_grow_and_the_last_failure_is_raised(failures: int) -> None:
    kept: list[float] = []
    left = iter([ServerAwayError("away")] * failures)

    def ask() -> str:
        error = next(left, None)
        if error is not None:
            raise error
        return "here"

    if failures == TRIES:
        with pytest.raises(ServerAwayError, match="away"):
            patiently(ask, kept.append)
    else:
        assert patiently(ask, kept.append) == "here"
    assert len(kept) == min(failures, TRIES - 1)
    assert all(0 <= wait <= FIRST_S * 2**number for number, wait in enumerate(kept))
