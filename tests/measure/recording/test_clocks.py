"""Suspensions and jumps of the wall clock are told apart, whatever the kernel's clocks show."""

from __future__ import annotations

import time

import pytest

from powerlab.measure.recording import clocks
from powerlab.measure.recording.clocks import read_clocks, suspended_since_boot_s


class FakeKernel:
    """Three clocks that go when they are read, and may be suspended or set."""

    def __init__(self) -> None:
        self.monotonic_s, self.suspended_s, self.started_at_s = 100.0, 0.0, 1.7e9
        self.read_takes_s = 1e-6

    def clock_gettime(self, clock: int) -> float:
        self.monotonic_s += self.read_takes_s
        boot_s = self.monotonic_s + self.suspended_s
        return {
            time.CLOCK_MONOTONIC: self.monotonic_s,
            time.CLOCK_BOOTTIME: boot_s,
            time.CLOCK_REALTIME: self.started_at_s + boot_s,
        }[clock]


@pytest.fixture
def kernel(monkeypatch) -> FakeKernel:
    fake = FakeKernel()
    monkeypatch.setattr(clocks.time, "clock_gettime", fake.clock_gettime)
    return fake


def test_nothing_happened(kernel):
    before = read_clocks()
    kernel.monotonic_s += 600
    after = read_clocks()
    assert before.suspended_until_s(after) == pytest.approx(0, abs=1e-4)
    assert before.jumped_until_s(after) == pytest.approx(0, abs=1e-4)


def test_a_suspension_is_no_jump(kernel):
    before = read_clocks()
    kernel.suspended_s += 31.4
    after = read_clocks()
    assert before.suspended_until_s(after) == pytest.approx(31.4, abs=1e-4)
    assert before.jumped_until_s(after) == pytest.approx(0, abs=1e-4)
    assert suspended_since_boot_s() == pytest.approx(31.4, abs=1e-4)


@pytest.mark.parametrize("jump_s", [3600.0, -0.5])
def test_a_jump_is_no_suspension(kernel, jump_s):
    before = read_clocks()
    kernel.started_at_s += jump_s
    after = read_clocks()
    assert before.jumped_until_s(after) == pytest.approx(jump_s, abs=1e-4)
    assert before.suspended_until_s(after) == pytest.approx(0, abs=1e-4)


def test_a_busy_machine_reads_its_clocks_again(kernel, monkeypatch):
    """The first time a read takes a tenth of a second, as if another process had run in between."""
    slow = iter([0.1, 0.1, 0.1, 0.1])
    gettime = kernel.clock_gettime

    def busy(clock: int) -> float:
        kernel.read_takes_s = next(slow, 1e-6)
        return gettime(clock)

    monkeypatch.setattr(clocks.time, "clock_gettime", busy)
    assert read_clocks().suspended_s == pytest.approx(0, abs=1e-4)


def test_this_machine_has_clocks():
    now = read_clocks()
    assert now.suspended_s >= -0.001
    assert abs(now.jumped_until_s(read_clocks())) < 0.05
