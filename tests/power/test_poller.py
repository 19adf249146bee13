"""The thread that reads what is no file."""

from __future__ import annotations

import threading
import time

import pytest

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power import poller
from powerlab.power.base import PolledChannel
from powerlab.power.poller import Poller

RAIL = Rail(
    source="fake",
    name="rail",
    quantity=RailQuantity.POWER,
    resolution=0.0,
    relative_error=0.0,
    update_period_s=0.0,
    provenance=Provenance.MEASURED,
)
PATIENCE_S = 20.0


class Counted:
    """Reads 1.0 for ever and lets a test wait for a count of reads."""

    def __init__(self) -> None:
        self.reads = 0
        self._enough = threading.Event()
        self._wanted = 3

    def __call__(self) -> float:
        self.reads += 1
        if self.reads >= self._wanted:
            self._enough.set()
        return 1.0

    def wait(self) -> None:
        assert self._enough.wait(PATIENCE_S)


def test_without_channels_no_thread_is_started() -> None:
    before = threading.active_count()
    idle = Poller([], 0.001)
    idle.start()
    assert threading.active_count() == before
    idle.stop()


def test_starting_again_forgets_earlier_samples_and_stopping_twice_is_harmless() -> None:
    read = Counted()
    found = Poller([PolledChannel(rail=RAIL, read=read)], 0.001)
    found.start()
    read.wait()
    found.stop()
    found.stop()
    first = found.samples[0]
    assert len(first.time_ns) == len(first.value) == len(first.cost_ns) == read.reads
    found.start()
    found.stop()
    assert found.samples[0] is not first
    assert len(first.time_ns) + len(found.samples[0].time_ns) == read.reads


def test_a_clock_that_does_not_move_gives_no_second_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time must increase strictly: a value without a moment of its own is dropped and counted."""
    samples = poller.PolledSamples()
    monkeypatch.setattr(time, "monotonic_ns", lambda: 1_000)
    for _ in range(3):
        poller._sample(PolledChannel(rail=RAIL, read=lambda: 2.0), samples)
    assert (samples.time_ns, samples.value, samples.failed_reads) == ([1_000], [2.0], 2)
