"""Ctrl-C held back reaches, when the time comes, whoever would have had it."""

from __future__ import annotations

import signal

import pytest

from powerlab.cli.process.interrupts import orderly_ends, uninterrupted


@pytest.fixture(autouse=True)
def _handler():
    previous = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, previous)


def test_several_presses_are_one():
    def press_twice() -> None:
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        press_twice()


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_handler_of_ones_own_gets_the_signal_after_the_block():
    heard = []
    signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert not heard
    assert heard == [signal.SIGINT]


def test_the_handler_is_back_after_an_error_in_the_block():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="broken"), uninterrupted():
        raise ValueError("broken")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_every_orderly_end_is_held_back_inside(number):
    reached = []
    before = signal.getsignal(number)

    def work() -> None:
        with orderly_ends():
            with uninterrupted():
                signal.raise_signal(number)
                reached.append("end of the block")
            reached.append("after the block")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["end of the block"]
    assert signal.getsignal(number) is before
