"""The native sampler on files that somebody else opened, stopped from many threads, and what it says it cost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from powerlab.native import _native  # type: ignore[attr-defined]

PERIOD_NS = 200_000
TIMEOUT_S = 20.0


def wait_rounds(sampler: Any, more: int = 3) -> None:
    wanted, deadline = sampler.rounds + more, time.monotonic() + TIMEOUT_S
    while sampler.rounds < wanted:
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.0005)


def descriptors() -> set[int]:
    """Return what is open, without the descriptor that the listing itself needs."""
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


@pytest.fixture
def sensor(tmp_path: Path) -> Path:
    path = tmp_path / "energy_uj"
    path.write_text("42\n")
    return path


@pytest.fixture
def opened(sensor: Path) -> Iterator[int]:
    descriptor = os.open(sensor, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def values(sampler: Any) -> list[set[int]]:
    """Record a few rounds and return what each channel gave."""
    sampler.start()
    wait_rounds(sampler)
    sampler.stop()
    return [set(value.tolist()) for _, value, _, _ in sampler.take()]


def test_descriptors_and_paths_stand_side_by_side(sensor: Path, opened: int, tmp_path: Path) -> None:
    amps = tmp_path / "curr1_input"
    amps.write_text("2\n")
    sampler = _native.sampler.Sampler([[opened], [str(amps), opened], [str(sensor)]], PERIOD_NS)
    assert values(sampler) == [{42}, {84}, {42}]


def test_a_descriptor_is_duplicated_and_stays_its_owners(sensor: Path) -> None:
    descriptor = os.open(sensor, os.O_RDONLY)
    sampler = _native.sampler.Sampler([[descriptor]], PERIOD_NS)
    os.close(descriptor)
    assert values(sampler) == [{42}]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_duplicates_are_closed_and_not_handed_to_child_processes(opened: int) -> None:
    before = descriptors()
    sampler = _native.sampler.Sampler([[opened]] * 5, PERIOD_NS)
    new = descriptors() - before
    assert len(new) == 5
    assert not any(os.get_inheritable(descriptor) for descriptor in new)
    del sampler
    assert descriptors() == before


def test_reading_does_not_move_the_owners_position(opened: int) -> None:
    os.lseek(opened, 1, os.SEEK_SET)
    assert values(_native.sampler.Sampler([[opened]], PERIOD_NS)) == [{42}]
    assert os.read(opened, 10) == b"2\n"


def test_the_file_behind_a_descriptor_is_followed_and_not_its_name(sensor: Path, opened: int) -> None:
    """Nothing is known of a name, and a file that took it may be one that this process was not given."""
    fresh = sensor.with_suffix(".new")
    fresh.write_text("43\n")
    fresh.rename(sensor)
    assert values(_native.sampler.Sampler([[opened]], PERIOD_NS)) == [{42}]


def test_a_file_that_a_privileged_process_opened_is_read_without_the_right_to_open_it(sensor: Path) -> None:
    descriptor = os.open(sensor, os.O_RDONLY)
    sensor.chmod(0)
    me = os.geteuid()
    try:
        if me == 0:
            os.seteuid(65534)
        with pytest.raises(PermissionError):
            _native.sampler.Sampler([[str(sensor)]], PERIOD_NS)
        assert values(_native.sampler.Sampler([[descriptor]], PERIOD_NS)) == [{42}]
    finally:
        os.seteuid(me)
        os.close(descriptor)


def test_a_descriptor_that_cannot_be_read_gives_failed_reads(tmp_path: Path) -> None:
    written, (reader, writer) = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT), os.pipe()
    try:
        sampler = _native.sampler.Sampler([[written], [reader]], PERIOD_NS)
        sampler.start()
        sampler.stop()
        for _, value, _, failed in sampler.take():
            assert len(value) == 0
            assert failed == sampler.rounds
    finally:
        for descriptor in (written, reader, writer):
            os.close(descriptor)


@pytest.mark.parametrize("descriptor", [-1, 1 << 30])
def test_a_descriptor_that_is_not_open_is_an_os_error_that_names_it(descriptor: int) -> None:
    before = descriptors()
    with pytest.raises(OSError, match=f"descriptor {descriptor}"):
        _native.sampler.Sampler([[0], [descriptor]], PERIOD_NS)
    assert descriptors() == before


@pytest.mark.parametrize("source", [None, 1.5, b"bytes", 1 << 40])
def test_what_is_neither_a_path_nor_a_descriptor_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError):
        _native.sampler.Sampler([[source]], PERIOD_NS)


def test_many_threads_may_stop_one_sampler(sensor: Path) -> None:
    """Whoever returns from stop() may take the samples: the thread is gone for all of them."""
    sampler = _native.sampler.Sampler([[str(sensor)]], PERIOD_NS)
    failures: list[BaseException] = []
    for _ in range(50):
        gate = threading.Barrier(4)

        def stop(gate: threading.Barrier = gate) -> None:
            try:
                gate.wait(TIMEOUT_S)
                sampler.stop()
                sampler.take()
            except BaseException as error:
                failures.append(error)

        sampler.start()
        stoppers = [threading.Thread(target=stop) for _ in range(4)]
        for stopper in stoppers:
            stopper.start()
        for stopper in stoppers:
            stopper.join(TIMEOUT_S)
        assert not failures
        assert not any(stopper.is_alive() for stopper in stoppers)


def test_stops_takes_and_starts_may_come_from_different_threads(sensor: Path) -> None:
    sampler = _native.sampler.Sampler([[str(sensor)]], PERIOD_NS)
    done = threading.Event()
    unexpected: list[BaseException] = []

    def meddle() -> None:
        while not done.is_set():
            try:
                sampler.start()
                sampler.take()
            except RuntimeError:
                sampler.stop()
            except BaseException as error:
                unexpected.append(error)
                return

    meddlers = [threading.Thread(target=meddle) for _ in range(3)]
    for meddler in meddlers:
        meddler.start()
    for _ in range(100):
        sampler.start()
        sampler.stop()
    done.set()
    for meddler in meddlers:
        meddler.join(TIMEOUT_S)
    sampler.stop()
    assert not unexpected


def test_a_stop_ends_a_long_sleep_at_once(sensor: Path) -> None:
    """The thread is woken: it does not look again and again whether it is to stop."""
    sampler = _native.sampler.Sampler([[str(sensor)]], 3600 * 1_000_000_000)
    for _ in range(100):
        sampler.start()
        sampler.stop()
        assert sampler.rounds == 1


def test_the_cost_of_a_recording_is_known_when_it_has_ended(sensor: Path) -> None:
    sampler = _native.sampler.Sampler([[str(sensor)]] * 6, PERIOD_NS)
    assert sampler.cpu_ns == sampler.wall_ns == 0
    before_ns = time.monotonic_ns()
    sampler.start()
    assert sampler.cpu_ns == sampler.wall_ns == 0
    wait_rounds(sampler, 20)
    sampler.stop()
    elapsed_ns = time.monotonic_ns() - before_ns
    assert 0 < sampler.cpu_ns <= sampler.wall_ns <= elapsed_ns
    assert sampler.wall_ns >= 19 * PERIOD_NS


def test_the_cost_is_of_the_last_recording_alone(sensor: Path) -> None:
    sampler = _native.sampler.Sampler([[str(sensor)]] * 6, 1000)
    sampler.start()
    wait_rounds(sampler, 5000)
    sampler.stop()
    long_ns = sampler.cpu_ns
    sampler.start()
    sampler.stop()
    assert 0 < sampler.cpu_ns < long_ns


def test_processor_time_of_other_threads_is_not_counted(sensor: Path) -> None:
    sampler = _native.sampler.Sampler([[str(sensor)]], 3600 * 1_000_000_000)
    sampler.start()
    begin_ns = time.thread_time_ns()
    while time.thread_time_ns() - begin_ns < 50_000_000:
        pass
    sampler.stop()
    assert sampler.cpu_ns < 25_000_000
