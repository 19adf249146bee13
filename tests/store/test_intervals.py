"""Work at intervals: when it begins, how it ends, and that nobody is kept waiting by it."""

from __future__ import annotations

import threading

import pytest

from powerlab import periodic
from powerlab.periodic import at_intervals


def test_it_is_done_again_and_again() -> None:
    third, calls = threading.Event(), []

    def work() -> None:
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            third.set()

    with at_intervals(work, 0.001, "worker"):
        assert third.wait(60)
    assert set(calls) == {"worker"}
    assert "worker" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(("at_once", "at_end"), [(False, False), (True, False), (False, True), (True, True)])
def test_it_is_done_at_the_beginning_and_at_the_end_where_that_is_wanted(*, at_once: bool, at_end: bool) -> None:
    calls: list[str] = []
    begun = threading.Event()
    where = ["beginning"]

    def work() -> None:
        calls.append(where[0])
        begun.set()

    with at_intervals(work, 3600.0, "worker", at_once=at_once, at_end=at_end):
        assert not at_once or begun.wait(60)
        where[0] = "end"
    assert calls == ["beginning"] * at_once + ["end"] * at_end


def test_an_error_of_what_goes_on_meanwhile_ends_it() -> None:
    with pytest.raises(ZeroDivisionError), at_intervals(lambda: None, 3600.0, "worker"):
        raise ZeroDivisionError
    assert "worker" not in {thread.name for thread in threading.enumerate()}


def test_what_takes_too_long_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "_LAST_S", 0.01)
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait()

    with at_intervals(work, 3600.0, "worker", at_once=True):
        assert begun.wait(60)
    assert "worker" in {thread.name for thread in threading.enumerate()}
    may_end.set()
