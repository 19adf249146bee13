"""The thread that reads what is no file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.power.base import PolledChannel, Stamped
from powerlab.power.sampling import poller
from powerlab.power.sampling.poller import Poller, read_every_s

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
    monkeypatch.setattr(poller, "time", SimpleNamespace(monotonic_ns=lambda: 1_000))
    for _ in range(3):
        poller._sample(PolledChannel(rail=RAIL, read=lambda: 2.0), samples)
    assert (samples.time_ns, samples.value, samples.failed_reads) == ([1_000], [2.0], 2)


def test_a_value_that_comes_with_its_own_moment_keeps_it_and_counts_once() -> None:
    values = iter([Stamped(10, 1.0), Stamped(10, 1.0), Stamped(9, 5.0), Stamped(30, 2.0)])
    read = Counted()
    read._wanted = 8

    def newest() -> Stamped:
        read()
        return next(values, Stamped(30, 2.0))

    found = Poller([PolledChannel(rail=RAIL, read=newest)], 0.001)
    found.start()
    read.wait()
    found.stop()
    assert found.samples[0].time_ns == [10, 30]
    assert found.samples[0].value == [1.0, 2.0]
    assert found.samples[0].failed_reads == 0, "nothing new is no failure"


def test_channels_share_their_session_and_it_ends_with_the_sampling() -> None:
    events: list[str] = []

    @contextmanager
    def session() -> Iterator[None]:
        events.append("open")
        yield
        events.append("closed")

    read = Counted()
    channels = [
        PolledChannel(rail=RAIL, read=read, session=session),
        PolledChannel(rail=RAIL, read=read, session=session),
    ]
    found = Poller(channels, 0.001)
    for _ in range(2):
        found.start()
        read.wait()
        found.stop()
    assert events == ["open", "closed"] * 2


def test_a_session_that_does_not_open_is_readings_that_fail_and_spoils_no_other_rail() -> None:
    def refused() -> object:
        raise ConnectionRefusedError("nobody there")

    def dead() -> float:
        raise ConnectionError("not open")

    read = Counted()
    found = Poller(
        [
            PolledChannel(rail=RAIL, read=dead, session=refused),  # type: ignore[arg-type]
            PolledChannel(rail=RAIL, read=read),
        ],
        0.001,
    )
    found.start()
    read.wait()
    found.stop()
    assert found.samples[0].time_ns == []
    assert found.samples[0].failed_reads > 0
    assert found.samples[1].value[:2] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("update_s", "seen_share", "asked_s", "every_s"),
    [
        (0.1, 1.0, 0.01, 0.1),
        (0.1, 1.0, 0.5, 0.5),
        (0.0, 1.0, 0.01, 0.01),
        (0.1, 0.25, 0.01, 0.02),
        (0.1, 0.25, 0.5, 0.02),
    ],
)
def test_a_sensor_that_looks_part_of_the_time_is_read_more_often(
    update_s: float, seen_share: float, asked_s: float, every_s: float
) -> None:
    rail = replace(RAIL, update_period_s=update_s, seen_share=seen_share)
    assert read_every_s(rail, asked_s) == pytest.approx(every_s)
