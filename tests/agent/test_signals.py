from __future__ import annotations

import signal

import pytest

from powerlab_agent.main import heed_signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_asks_the_agent_to_stop_is_heeded(number: signal.Signals) -> None:
    """A closed terminal sends SIGHUP: a run in progress is to end in order then, too."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    asked: list[str] = []
    try:
        heed_signals(lambda: asked.append("stop"))
        signal.raise_signal(number)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert asked == ["stop"]
